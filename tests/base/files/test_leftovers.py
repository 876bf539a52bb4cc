"""What killed processes leave behind, and what is nobody's business to remove."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from onebasin.base.files.atomic import replacing
from onebasin.base.files.leftovers import sweep, unfinished, working_folder
from onebasin.base.files.makers import Maker


@pytest.fixture(scope="module")
def ended():
    """A process that is no more, and was killed."""
    code = (
        "from onebasin.base.files.makers import Maker; import time;"
        "print(Maker.own(), flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        maker = Maker.read(process.stdout.readline().strip())
        assert maker.pid == process.pid
        assert not maker.has_ended
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert maker.has_ended  # though its number is not free yet
    return maker


def left_by(maker, path):
    """A name that this process has not given."""
    return path.with_name(unfinished(path).name.replace(str(Maker.own()), str(maker)))


def test_parts_of_processes_that_ended_are_removed_and_nothing_else(tmp_path, ended):
    file, folder = left_by(ended, tmp_path / "run.nc"), left_by(ended, tmp_path / "b\nuild")
    file.write_text("part")
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "file").write_text("part")
    kept = [
        unfinished(tmp_path / "run.nc"),  # our own
        left_by(replace(ended, machine="0" * 8), tmp_path / "run.nc"),  # another machine's
        tmp_path / ".run.nc.1234abcd",
        tmp_path / "run.nc.onebasin-notes",
        tmp_path / ".run.nc.onebasin-backup",
        tmp_path / f".run.nc.onebasin-{ended}",
        tmp_path / f"run.nc.onebasin-{ended}-12345678",
        tmp_path / f".run.nc.onebasin-{ended}-12345678.txt",
        tmp_path / f".run.nc.onebasin-{ended}-1234567g",
    ]
    for path in kept:
        path.write_text("kept")
    link = left_by(ended, tmp_path / "link")
    link.symlink_to(tmp_path)
    sweep(tmp_path)
    assert not file.exists()
    assert not folder.exists()
    assert sorted(tmp_path.iterdir()) == sorted([*kept, link])


@pytest.mark.parametrize("name", ["run.nc", "é" * 120 + ".nc"])
def test_names_of_any_length_have_room_for_their_part(tmp_path, name, ended):
    part = left_by(ended, tmp_path / name)
    part.write_text("")
    with replacing(tmp_path / name) as new:
        assert not part.exists()
        new.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_working_folder_is_private_gone_at_the_end_and_swept_before(tmp_path, ended):
    left = left_by(ended, tmp_path / "run")
    left.mkdir()
    with working_folder("run", tmp_path) as folder:
        assert not left.exists()
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("")
    assert list(tmp_path.iterdir()) == []
