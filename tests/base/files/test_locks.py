"""Locks: one holder, who can be named; nothing left behind, whatever became of it."""

import os
import signal
import subprocess
import sys

import pytest

from onebasin.base.errors import InUse
from onebasin.base.files.writing import locked

HOLDER = """
import sys, time
from pathlib import Path
from onebasin.base.files.writing import locked
with locked(Path(sys.argv[1]), argument="path"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run.nc")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_is_refused_at_once_and_told_who_holds_it(tmp_path, holder):
    with (
        pytest.raises(
            InUse,
            match=rf"`--out` is .*run\.nc, which process {holder.pid} \(`.*` on .*\) is writing; wait",
        ),
        locked(tmp_path / "run.nc", argument="--out"),
    ):
        pass


def test_who_was_killed_blocks_nobody_and_leaves_nothing_for_long(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert [path.name for path in tmp_path.iterdir()] == [".run.nc.lock"]
    with locked(tmp_path / "run.nc", argument="path"):
        assert f"process {os.getpid()} (" in (tmp_path / ".run.nc.lock").read_text()
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_never_hold_it_together(tmp_path):
    """Each deletes the file that the next has open: the race that a lock file without a second look loses."""
    script = """
import sys
from pathlib import Path
from onebasin.base.errors import InUse
from onebasin.base.files.writing import locked
inside, won = Path(sys.argv[1]) / "inside", 0
while won < 60:
    try:
        with locked(Path(sys.argv[1]) / "a", argument="path"):
            inside.touch(exist_ok=False)
            inside.unlink()
            won += 1
    except InUse:
        pass
"""
    words = [sys.executable, "-c", script, str(tmp_path)]
    processes = [subprocess.Popen(words) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []
