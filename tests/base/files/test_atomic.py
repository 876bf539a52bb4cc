"""Files that appear whole or not at all."""

import os

import pytest

from onebasin.base.files.atomic import replacing


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def test_file_takes_the_place_of_another_at_the_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_what_breaks_off_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("umask")
def test_permissions_are_those_that_the_umask_leaves(tmp_path):
    with replacing(tmp_path / "a.txt") as part:
        part.write_text("for the group")
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_file_is_on_the_disk_before_it_takes_its_name_and_the_name_after(tmp_path, monkeypatch):
    path, done = tmp_path / "a.txt", []
    flush, rename = os.fsync, os.replace

    def flushed(descriptor):
        done.append(("flush", os.fstat(descriptor).st_ino))
        flush(descriptor)

    def renamed(old, new):
        done.append(("rename", os.stat(old).st_ino))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    with replacing(path) as part:
        part.write_text("new")
    file, folder = path.stat().st_ino, tmp_path.stat().st_ino
    assert done == [("flush", file), ("rename", file), ("flush", folder)]


def test_file_that_cannot_be_flushed_does_not_take_its_name(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), replacing(path) as part:
        part.write_text("new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
