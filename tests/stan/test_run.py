"""Running a program: a shell script stands for it."""

import threading

import pytest

from onebasin.base.errors import RunCancelled
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.home.errors import StanRunError
from onebasin.stan.run import ReadyProgram, run


@pytest.fixture
def program(tmp_path):
    """Make an executable of shell lines."""

    def make(text):
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        nothing = ProgramInfo((), (), (), (), ())
        return ReadyProgram(
            tmp_path / "my coin.stan", (str(path),), tmp_path / "data.json", nothing
        )

    return make


def test_watch_is_told_every_line_once_and_whole(program, tmp_path):
    told: list[str] = []
    script = program(
        "echo one; sleep 0.2; printf 'tw'; sleep 0.2; echo o; echo three; sleep 0.2; echo $1"
    )
    printed = run(script, ["four"], tmp_path, watch=told.append)
    assert printed == "one\ntwo\nthree\nfour\n"
    assert printed.startswith("".join(told))
    assert "".join(told).startswith("one\ntwo\nthree\n")
    assert len(told) >= 2
    assert all(text.endswith("\n") for text in told)


def test_a_failure_carries_the_programs_own_words_and_the_users_own_files(program, tmp_path):
    said = "Exception: no (in 'included/part.stan', included from 'program.stan')"
    script = program(f'echo fine; echo "{said}"; exit 3')
    own = "^my coin ended with exit code 3:\nException: no (in 'part.stan', included from 'my coin.stan')$"
    with pytest.raises(StanRunError, match=own.replace("(", r"\(").replace(")", r"\)")):
        run(script, [], tmp_path)


def test_a_run_that_is_cancelled_ends_at_once(program, tmp_path):
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(RunCancelled):
        run(program("exec sleep 60"), [], tmp_path, cancel=cancel)


def test_a_program_keeps_its_memory_unless_the_user_says_otherwise(program, tmp_path, monkeypatch):
    script = program("echo $MALLOC_MMAP_THRESHOLD_ $MALLOC_TRIM_THRESHOLD_")
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    assert run(script, [], tmp_path) == f"{32 * 2**20} {128 * 2**20}\n"
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000")
    assert run(script, [], tmp_path) == f"{32 * 2**20} 1000\n"
