"""Outputs: what is refused before any work, and what is found at the end."""

import os
from pathlib import Path

import pytest

from onebasin.base.errors import InUse, NameTaken
from onebasin.base.files.atomic import replacing
from onebasin.base.files.outputs import check_output, claim


class Refused(Exception):
    pass


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


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "run.nc"
    (tmp_path / "run-1.nc").write_text("also there")
    with pytest.raises(NameTaken, match=r"run\.nc has appeared .* in .*run-2\.nc\."):  # noqa: SIM117
        with replacing(path, new=True) as part:
            part.write_text("result")
            path.write_text("precious")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"run.nc": "precious", "run-1.nc": "also there", "run-2.nc": "result"}
