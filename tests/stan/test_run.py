"""Running a program: command lines word for word, a shell script that stands for it, and CmdStan's CSV files."""

import json
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from onebasin.base.errors import RunCancelled
from onebasin.stan import command
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.home.errors import StanRunError
from onebasin.stan.run import ReadyProgram, keep_whole_rows, read, read_adaptation, read_blocks, run

FILES = command.Files(data=Path("/d.json"), output=Path("/o.csv"))
COMMON = "data file=/d.json output file=/o.csv sig_figs=18"


ADVI = (
    "random seed=4 data file=/d output file=/o diagnostic_file=/e sig_figs=12 "
    "method=variational algorithm=fullrank iter=100 grad_samples=2 elbo_samples=3{} "
    "tol_rel_obj=0.01 eval_elbo=5 output_samples=6 adapt engaged={}"
)
SEED_3 = command.CommandStart(seed=3)
SAMPLE = {"draws": 10, "warmup": 20, "target_acceptance": 0.9, "metric": "diag", "refresh": 5}
NUTS = command.nuts(max_tree_depth=9)


def sample(start, **how):
    return command.sample(NUTS, FILES, start, **{**SAMPLE, **how})


def variational(eta):
    files = command.Files(data=Path("/d"), output=Path("/o"), diagnostics=Path("/e"), digits=12)
    samples = {"gradient_samples": 2, "elbo_samples": 3, "draws": 6}
    how = {"iterations": 100, "evaluate_every": 5, "tolerance": 0.01, "eta": eta, **samples}
    return command.variational("fullrank", files, command.CommandStart(seed=4), **how)


def pathfinder():
    how = {"paths": 3, "draws": 40, "path_draws": 50, "iterations": 60, "elbo_samples": 7}
    start = command.CommandStart(seed=1, init=2.0)
    return command.pathfinder(FILES, start, **how, history=5, save_paths=True)


CASES = {
    "nuts": (
        sample(command.CommandStart(seed=3, chain=2, init=0.5), metric="dense"),
        f"id=2 random seed=3 init=0.5 {COMMON} refresh=5 method=sample num_samples=10 num_warmup=20 "
        "adapt delta=0.9 algorithm=hmc engine=nuts max_depth=9 metric=dense_e",
    ),
    "going on from an earlier warmup": (
        sample(
            command.CommandStart(seed=3, chain=2, init=Path("/i.json")),
            **{"warmup": 0, "adapt": False},
            adapted=command.Adapted(step_size=0.25, metric=Path("/m.json")),
        ),
        f"id=2 random seed=3 init=/i.json {COMMON} refresh=5 method=sample num_samples=10 num_warmup=0 "
        "adapt delta=0.9 engaged=0 algorithm=hmc engine=nuts max_depth=9 metric=diag_e "
        "metric_file=/m.json stepsize=0.25",
    ),
    "a step size alone": (
        command.Adapted(step_size=1.0, metric=None).arguments(), "stepsize=1.0",
    ),
    "threads and a warmup that is written": (
        sample(SEED_3, threads=2, save_warmup=True),
        f"num_threads=2 random seed=3 {COMMON} refresh=5 method=sample num_samples=10 num_warmup=20 "
        "save_warmup=1 adapt delta=0.9 algorithm=hmc engine=nuts max_depth=9 metric=diag_e",
    ),
    "static": (command.static_hmc(trajectory_length=0.1), "engine=static int_time=0.1"),
    "optimise, with the Jacobian": (
        command.optimise(FILES, command.CommandStart(seed=1, init=2.0), iterations=7),
        f"random seed=1 init=2.0 {COMMON} method=optimize jacobian=1 algorithm=lbfgs iter=7",
    ),
    "laplace": (
        command.laplace(FILES, Path("/m.json"), seed=2, draws=30),
        f"random seed=2 {COMMON} method=laplace mode=/m.json jacobian=1 draws=30",
    ),
    "pathfinder": (
        pathfinder(),
        f"random seed=1 init=2.0 {COMMON} method=pathfinder history_size=5 num_psis_draws=40 num_paths=3 "
        "save_single_paths=1 max_lbfgs_iters=60 num_draws=50 num_elbo_draws=7",
    ),
    "variational, searching its step size": (variational(None), ADVI.format("", 1)),
    "variational with a step size": (variational(0.1), ADVI.format(" eta=0.1", 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_words_are_those_of_cmdstan(name):
    arguments, words = CASES[name]
    assert " ".join(arguments) == words


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
    path = found.write(tmp_path)
    if metric:
        assert json.loads(path.read_text()) == {"inv_metric": metric}
    else:
        assert path is None


def test_a_warmup_that_has_not_ended_came_to_nothing_and_one_parameter_has_one_axis():
    assert read_adaptation(HEAD[:1], 1.0) is None
    found = read_adaptation((*HEAD, "Diagonal elements of inverse mass matrix:", "0.5"), 1.0)
    assert found.inverse_metric.shape == (1,)
