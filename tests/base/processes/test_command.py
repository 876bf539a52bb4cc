"""A command as a process of its own: signals, streams, temporary files."""

import os
import signal
import subprocess
import sys
import time

WAITS = """
import os, sys, time, tempfile
from onebasin.base.processes.command import run_as_process
from onebasin.base.errors import Interrupted

def command():
    try:
        {before}
        print("ready", flush=True)
        time.sleep(60)
        return 0
    finally:
        {after}

sys.exit(run_as_process(command))
"""


WORDS = "onebasin: interrupted; files are written completely or not at all\n"


def start(before="pass", after="pass", **how):
    code = WAITS.format(before=before, after=after)
    how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], **how)
    assert process.stdout.readline() == "ready\n"
    return process


def end(process):
    out, err = process.communicate(timeout=20)
    return process.returncode, out, err


ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


def test_each_signal_ends_a_command_as_ctrl_c_does():
    numbers = [getattr(signal, name) for name in ENDING]
    processes = [start(after="print('cleaned up')") for _ in numbers]
    for number, process in zip(numbers, processes, strict=True):
        process.send_signal(number)
    assert {end(process) for process in processes} == {(130, "cleaned up\n", WORDS)}


def test_further_signals_do_not_disturb_the_cleaning_up():
    process = start(after="print('cleaning', flush=True); time.sleep(1); print('cleaned up')")
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "cleaning\n"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)
        time.sleep(0.1)
    assert end(process) == (130, "cleaned up\n", WORDS)


def test_temporary_files_of_a_killed_command_are_gone_after_the_next(tmp_path):
    how = {"env": os.environ | {"TMPDIR": str(tmp_path)}}
    process = start("tempfile.mkdtemp()", **how)
    (left,) = tmp_path.iterdir()
    assert len(list(left.iterdir())) == 1
    process.kill()
    end(process)
    process = start("tempfile.mkdtemp(); print(os.environ['TMPDIR'], file=sys.stderr)", **how)
    (new,) = tmp_path.iterdir()
    assert new != left
    process.send_signal(signal.SIGTERM)
    code, _, err = end(process)
    assert code == 130
    assert err == f"{new}\n{WORDS}"
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_is_no_failure():
    code = "import sys; from onebasin.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "study", "--list"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")
