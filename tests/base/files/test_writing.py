"""Files appear whole or not at all; what is rejected before any work; what killed processes leave behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onebasin.base.errors import InUse, NameTaken
from onebasin.base.files.writing import (
    check_output,
    claim,
    replacing,
    sweep,
    unfinished,
    working_folder,
)


class Refused(Exception):
    pass


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_what_breaks_off_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_another(tmp_path):
    for text in ("old", "new"):
        with replacing(tmp_path / "a.zarr") as part:
            part.mkdir()
            (part / "inside").write_text(text)
    assert [path.read_text() for path in tmp_path.rglob("*") if path.is_file()] == ["new"]
    assert os.listdir(tmp_path) == ["a.zarr"]


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


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "run.nc"
    (tmp_path / "run-1.nc").write_text("also there")
    with pytest.raises(NameTaken, match=r"run\.nc was created .* in .*run-2\.nc\."):  # noqa: SIM117
        with replacing(path, new=True) as part:
            part.write_text("result")
            path.write_text("precious")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"run.nc": "precious", "run-1.nc": "also there", "run-2.nc": "result"}


WRITE = """
import resource, sys
from pathlib import Path
import numpy as np, xarray as xr
from onebasin.base.errors import WriteError
from onebasin.base.files.netcdf import write_tree
from onebasin.base.files.writing import replacing

def netcdf(path):
    values = xr.Dataset({"a": (("x",), np.arange(100_000.0)), "b": (("x",), np.zeros(100_000))})
    write_tree(xr.DataTree.from_dict({"posterior": values, "more": values}), path)

def npz(path):
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, a=np.arange(100_000.0), b=np.arange(100_000.0))

def text(path):
    with replacing(path) as part:
        part.write_text("x" * 100_000)

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
for kind in (netcdf, npz, text):
    try:
        kind(Path(sys.argv[1]) / kind.__name__)
    except WriteError as error:
        print(error)
"""


def test_a_full_disk_is_one_error_that_names_the_file(tmp_path):
    """Of a process that allows files of 64 KiB: no traceback, no crash."""
    paths = [tmp_path / kind for kind in ("netcdf", "npz", "text")]
    for path in paths:
        path.write_text("old")
    words = [sys.executable, "-c", WRITE, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    assert [line.startswith(str(p)) for line, p in zip(told, paths, strict=True)] == [True] * 3
    assert sorted(tmp_path.iterdir()) == paths
    assert [path.read_text() for path in paths] == ["old"] * 3


def left_behind(path):
    """A name that a process has given which is no more, of a number that no process has."""
    name = unfinished(path).name
    return path.with_name(name.replace(f"-{os.getpid()}-", f"-{2**40}-"))


def test_parts_of_processes_that_ended_are_removed_and_nothing_else(tmp_path):
    file, folder = left_behind(tmp_path / "run.nc"), left_behind(tmp_path / "b\nuild")
    file.write_text("part")
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "file").write_text("part")
    ended = left_behind(tmp_path / "run.nc").name
    machine = ended.split("-")[1]
    kept = [
        unfinished(tmp_path / "run.nc"),  # our own
        tmp_path / ended.replace(machine, "0" * 8),  # another machine's
        tmp_path / ".run.nc.1234abcd",
        tmp_path / ".run.nc.onebasin-backup",
        tmp_path / ended.removeprefix("."),
        tmp_path / f"{ended}.txt",
    ]
    for path in kept:
        path.write_text("kept")
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_a_working_folder_is_private_gone_at_the_end_and_swept_before(tmp_path):
    left = left_behind(tmp_path / "run")
    left.mkdir()
    with working_folder("run", tmp_path) as folder:
        assert not left.exists()
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("")
    assert list(tmp_path.iterdir()) == []


def check(path, *, force=False, inputs=()):
    check_output(Path(path), force=force, error=Refused, argument="--out", inputs=inputs)


def make_link(path):
    (path.parent / "other").write_text("other")
    path.symlink_to("other")


@pytest.mark.parametrize("make", [Path.mkdir, make_link, os.mkfifo, Path.touch])
def test_what_is_no_new_file_is_refused(tmp_path, make):
    make(tmp_path / "out")
    for force in (False, make != Path.touch):
        with pytest.raises(Refused, match=r"^`--out` is .*out, which"):
            check(tmp_path / "out", force=force)
    assert os.listdir(tmp_path) and os.path.lexists(tmp_path / "out")


def test_an_input_is_never_the_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.nc").write_text("precious")
    os.link("in.nc", "hard.nc")
    Path("linked").symlink_to(tmp_path)
    for out in ("in.nc", "./in.nc", tmp_path / "in.nc", "hard.nc", "linked/in.nc"):
        with pytest.raises(Refused, match=r"which is also the input in\.nc; name another file"):
            check(out, force=True, inputs=[Path("other.nc"), Path("in.nc")])


def test_one_claims_and_the_next_is_refused(tmp_path):
    with claim(tmp_path / "new" / "out", force=False, error=Refused) as path:
        with (
            pytest.raises(InUse, match=r"`path` is .*out, which process"),
            claim(path, force=True, error=Refused),
        ):
            pass
        path.write_text("done")
    assert os.listdir(tmp_path / "new") == ["out"]
    with pytest.raises(Refused, match="exists"), claim(path, force=False, error=Refused):
        pass
