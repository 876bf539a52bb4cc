"""Programs that end with us: shell lines stand for compilers and Stan programs."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from onebasin.base.errors import RunCancelled
from onebasin.base.processes.children import KEPT_BYTES, run_guarded, started

FAMILY = "sh -c 'echo $$ >> pids; sleep 300; true' & echo $$ >> pids; wait"
"""A program, the program that it starts, and that one's own."""

# Under `nohup` the tests ignore SIGHUP, and so would every process that they start.
GUARD = """
import signal, sys
from pathlib import Path
from onebasin.base.processes.children import run_guarded
signal.signal(signal.SIGHUP, signal.SIG_DFL)
run_guarded(sys.argv[1:], folder=Path('.'))
"""


def shell(text):
    return ["/bin/sh", "-c", text]


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def family(folder):
    """The family's numbers, once both are written."""
    file = folder / "pids"
    assert wait_for(lambda: file.exists() and len(file.read_text().split()) == 2)
    return [int(word) for word in file.read_text().split()]


def gone(pids):
    return wait_for(lambda: not any(is_running(pid) for pid in pids), seconds=2.0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_programs_end_with_the_process_that_started_them(tmp_path, number):
    with subprocess.Popen([sys.executable, "-c", GUARD, *shell(FAMILY)], cwd=tmp_path) as parent:
        pids = family(tmp_path)
        parent.send_signal(number)
    assert gone(pids)


def test_what_a_program_started_ends_when_it_is_cancelled(tmp_path):
    cancel = threading.Event()
    thread = threading.Timer(0.3, cancel.set)
    thread.start()
    with pytest.raises(RunCancelled):
        run_guarded(shell(FAMILY), folder=tmp_path, cancel=cancel)
    thread.join()
    assert gone(family(tmp_path))


def test_what_a_program_leaves_running_ends_with_it(tmp_path):
    with started(shell("sleep 300 >/dev/null 2>&1 & echo $!"), folder=tmp_path) as process:
        stray = int(process.stdout.readline())
        assert process.wait() == 0
        assert is_running(stray)
    assert gone([stray])


def test_a_program_that_closes_its_stdout_is_waited_for_and_can_be_cancelled(tmp_path):
    assert run_guarded(shell("exec >&- 2>&-; sleep 0.2; exit 3"), folder=tmp_path).code == 3
    assert run_guarded(shell("echo last; kill -9 $$"), folder=tmp_path).code == -signal.SIGKILL
    cancel = threading.Event()
    thread = threading.Timer(0.2, cancel.set)
    thread.start()
    with pytest.raises(RunCancelled):
        run_guarded(shell("exec >&- 2>&-; sleep 300"), folder=tmp_path, cancel=cancel)
    thread.join()


def test_words_are_handed_on_unchanged(tmp_path):
    words = ["$(touch made)", "a b", "; touch made", "'\"", "x\ty", "é"]
    done = run_guarded(
        [sys.executable, "-c", "import sys; print(sys.argv[1:])", *words], folder=tmp_path
    )
    assert done.printed == f"{words}\n"
    assert list(tmp_path.iterdir()) == []


def test_of_a_program_that_prints_much_beginning_and_end_are_kept(tmp_path):
    total = 40_000_000
    text = f"echo first; head -c {total} /dev/zero | tr '\\0' x; echo; echo last"
    told = 0

    def watch(lines):
        nonlocal told
        told += len(lines)
        assert lines.endswith("\n")
        assert len(lines) <= 3 * 64 * 1024

    done = run_guarded(shell(text), folder=tmp_path, watch=watch)
    assert done.printed.startswith("first\nxxx")
    assert done.printed.endswith("xxx\nlast\n")
    assert "bytes are left out" in done.printed
    assert len(done.printed) < 4 * KEPT_BYTES
    assert told > total
    assert list(tmp_path.iterdir()) == []
