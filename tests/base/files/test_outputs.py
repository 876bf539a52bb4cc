"""Outputs: what is refused before any work, and what is found at the end."""

import os
import socket
from pathlib import Path

import pytest

from onebasin.base.errors import InUse, NameTaken
from onebasin.base.files.atomic import replacing
from onebasin.base.files.outputs import check_output, claim

from ...each import each


class Refused(Exception):
    pass


def check(path, *, force=False, inputs=()):
    check_output(Path(path), force=force, error=Refused, argument="--out", inputs=inputs)


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    os.chdir(path.parent)  # its name may be no longer than about 100 bytes
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def make_dangling(path):
    path.symlink_to("nowhere")


def make_link(path):
    (path.parent / "other").write_text("other")
    path.symlink_to("other")


@each(
    ("make", "word"),
    [
        (Path.mkdir, "a folder"),
        (make_link, "a symbolic link"),
        (make_dangling, "a symbolic link"),
        (make_fifo, "a FIFO"),
        (make_socket, "a socket"),
        (Path.touch, "which exists"),
    ],
)
def test_what_is_no_new_file_is_refused(tmp_path, monkeypatch, make, word):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "out")
    before = sorted(os.listdir(tmp_path))
    for force in (False, True):
        if force and word == "which exists":
            check(tmp_path / "out", force=True)
            continue
        with pytest.raises(
            Refused, match=rf"^`--out` is .*out, which .*{word.split()[-1]}[^\n]*\.$"
        ):
            check(tmp_path / "out", force=force)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_device_is_refused():
    with pytest.raises(Refused, match="/dev/null, which is a device, and a file is needed"):
        check("/dev/null", force=True)


def test_an_input_is_never_the_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.nc").write_text("precious")
    os.link("in.nc", "hard.nc")
    Path("linked").symlink_to(tmp_path)
    for out in ("in.nc", "./in.nc", tmp_path / "in.nc", "hard.nc", "linked/in.nc"):
        with pytest.raises(Refused, match=r"which is also the input in\.nc; name another file"):
            check(out, force=True, inputs=[Path("other.nc"), Path("in.nc")])
    with pytest.raises(Refused, match="also the input"):
        check("absent.nc", inputs=[tmp_path / "absent.nc"])


def test_nothing_is_made_by_a_check(tmp_path):
    check(tmp_path / "a" / "b" / "out.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(Refused, match="whose name is too long"):
        check(tmp_path / ("x" * 250))
    with pytest.raises(Refused, match="File name too long"):
        check(tmp_path / ("x" * 300))


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


@each("links", [True, False])
def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path, monkeypatch, links):
    if not links:

        def refuse(*_):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "run.nc"
    (tmp_path / "run-1.nc").write_text("also there")
    with pytest.raises(NameTaken, match=r"run\.nc has appeared .* in .*run-2\.nc\."):  # noqa: SIM117
        with replacing(path, new=True) as part:
            part.write_text("result")
            path.write_text("precious")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"run.nc": "precious", "run-1.nc": "also there", "run-2.nc": "result"}
