"""Running a program: command lines word for word, a shell script that stands for it, and CmdStan's CSV files."""

import json
import threading

import numpy as np
import pandas as pd
import pytest

from onebasin.base.errors import RunCancelled, StanRunError
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.run import ReadyProgram, keep_whole_rows, read, read_adaptation, read_blocks, run


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


HEADER = "lp__,accept_stat__,x,m.1.1,m.2.1,m.1.2,m.2.2\n"
TIMES = "# \n#  Elapsed Time: 0.25 seconds (Warm-up)\n#                0.5 seconds (Sampling)\n"


def write(path, rows):
    numbers = np.random.default_rng(0).normal(size=(rows, 7))
    lines = [",".join(f"{value:.12g}" for value in row) + "\n" for row in numbers]
    lines.insert(rows // 2, "# Adaptation terminated\n")
    path.write_text("# stan_version_major = 2\n" + HEADER + "".join(lines) + TIMES)


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 11, 35])
def test_rows_read_in_pieces_are_those_read_at_once(tmp_path, monkeypatch, rows):
    write(tmp_path / "draws.csv", rows)
    monkeypatch.setattr("onebasin.stan.run._CHUNK", 70)
    found = read(tmp_path / "draws.csv")
    table = pd.read_csv(tmp_path / "draws.csv", comment="#", dtype=np.float64)
    assert list(found.method) == ["lp__", "accept_stat__"]
    for values, column in ((found.method["lp__"], "lp__"), (found.variables["x"], "x")):
        np.testing.assert_array_equal(values, table[column].to_numpy())
    assert found.variables["m"].shape == (rows, 2, 2)
    np.testing.assert_array_equal(found.variables["m"][:, 1, 0], table["m.2.1"].to_numpy())
    assert (found.seconds("Warm-up"), found.seconds("Sampling")) == (0.25, 0.5)


def test_a_file_without_a_header_is_no_result(tmp_path):
    (tmp_path / "draws.csv").write_text("# nothing\n")
    with pytest.raises(StanRunError, match=r"Stan wrote no draws to `draws\.csv`"):
        read(tmp_path / "draws.csv")


def test_a_file_cut_anywhere_keeps_the_rows_that_are_whole(tmp_path):
    write(tmp_path / "whole.csv", 3)
    content = (tmp_path / "whole.csv").read_bytes()
    whole = read(tmp_path / "whole.csv")
    path, begin = tmp_path / "draws.csv", content.index(HEADER.encode()) + len(HEADER)
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        rows = keep_whole_rows(path)
        lines = content[begin:size].split(b"\n")[:-1]
        assert rows == sum(not line.startswith(b"#") for line in lines)
        if size >= begin:
            found = read(path)
            np.testing.assert_array_equal(found.method["lp__"], whole.method["lp__"][:rows])
            np.testing.assert_array_equal(found.variables["m"], whole.variables["m"][:rows])


@pytest.mark.parametrize("ruin", [b"\0" * 40 + b"\n", b"1,2,3\n", b"\0" * 40])
def test_what_a_machine_that_went_down_has_left_is_cut_off(tmp_path, ruin):
    path = tmp_path / "draws.csv"
    write(path, 5)
    content = path.read_bytes()
    end = content.index(TIMES.encode())
    path.write_bytes(content[:end] + ruin + content[end:])
    assert keep_whole_rows(path) == 5
    assert path.read_bytes() == content[:end]


def test_blocks_are_the_rows_in_their_order(tmp_path, monkeypatch):
    write(tmp_path / "draws.csv", 25)
    monkeypatch.setattr("onebasin.stan.run._CHUNK", 70)
    blocks = list(read_blocks(tmp_path / "draws.csv"))
    assert [len(block.variables["m"]) for block in blocks] == [10, 10, 5]
    assert all(block.seconds("Sampling") == 0.5 for block in blocks)
    joined = np.concatenate([block.variables["m"] for block in blocks])
    np.testing.assert_array_equal(joined, read(tmp_path / "draws.csv").variables["m"])


# What a warmup came to

HEAD = ("method = sample (Default)", "Adaptation terminated", "Step size = 0.872")
DIAGONAL = (*HEAD, "Diagonal elements of inverse mass matrix:", "0.5, 1.25e-05", "")
DENSE = (*HEAD, "Elements of inverse mass matrix:", "1, 0.5", "0.5, 2", "", "Elapsed Time: 0.1")
UNIT = (*HEAD, "No free parameters for unit metric", "")


@pytest.mark.parametrize(
    ("comments", "metric"),
    [(DIAGONAL, [0.5, 1.25e-5]), (DENSE, [[1, 0.5], [0.5, 2]]), (UNIT, [])],
    ids=["diag", "dense", "unit"],
)
def test_a_metric_is_read_and_written(tmp_path, comments, metric):
    found = read_adaptation(comments, 0.87212345)
    assert found.step_size == 0.87212345
    np.testing.assert_array_equal(found.inverse_metric, metric)
    *file, step = found.arguments(tmp_path)
    assert step == "stepsize=0.87212345"
    if metric:
        assert file == [f"metric_file={tmp_path / 'metric.json'}"]
        assert json.loads((tmp_path / "metric.json").read_text()) == {"inv_metric": metric}
    else:
        assert not file


def test_a_warmup_that_has_not_ended_came_to_nothing_and_one_parameter_has_one_axis():
    assert read_adaptation(HEAD[:1], 1.0) is None
    found = read_adaptation((*HEAD, "Diagonal elements of inverse mass matrix:", "0.5"), 1.0)
    assert found.inverse_metric.shape == (1,)
