"""Chains, calibration and studies on real Dask workers, as the guide starts them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.errors import TaskError
from onebasin.base.processes import tasks

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "cluster.md"
MARK = "ONEBASIN_TEST_OF_WORKERS"
RUN = "import sys; from onebasin.cli.main import main; sys.exit(main())"
Y = np.linspace(-1, 2, 12)
PROGRAM = (
    "data { vector[12] y; } parameters { real mu; } model { mu ~ normal(0, 1); y ~ normal(mu, 1); }"
)


def model() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mu, sigma), obs=Y)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Start programs that end with the test."""
    programs = []

    def start(*words: str) -> subprocess.Popen:
        with (tmp_path / f"program-{len(programs)}.log").open("wb") as log:
            how = {"stdout": log, "stderr": log, "cwd": tmp_path}
            programs.append(subprocess.Popen(words, env=os.environ | {MARK: str(tmp_path)}, **how))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()
        program.wait(30)


@pytest.fixture
def guide(start) -> tuple[list[subprocess.Popen], str]:
    """Scheduler and workers by the lines of the guide, on another port; returns them and the address."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        text = GUIDE.read_text(encoding="utf-8").replace("8786", str(one.getsockname()[1]))
    lines = re.findall(r"^dask (?:scheduler|worker) .*$", text, re.MULTILINE)
    assert len(lines) == 3
    (address,) = set(re.findall(r"--scheduler (tcp://127\S+)", text))
    return [start(sys.executable, "-m", *line.split()) for line in lines], address


def task_processes(place: Path) -> int:
    """Count the processes of tasks that belong to this test."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            mine = f"{MARK}={place}".encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        found += mine and b"onebasin.base.processes.task_process" in words
    return found


def kill_worker(worker: subprocess.Popen) -> None:
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    for pid in (worker.pid, *map(int, children)):  # the nanny, which would start another, first
        os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def same(a: xr.DataTree, b: xr.DataTree, *more: str) -> None:
    for group in ("posterior", "sample_stats", *more):
        one, other = (tree[group].to_dataset().drop_attrs() for tree in (a, b))
        xr.testing.assert_identical(one, other)


def test_chains_have_the_draws_of_home_though_a_worker_is_killed(guide, tmp_path, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    (_, worker, _), address = guide
    target = ob.numpyro_model(model)
    how = {"chains": 4, "warmup": 300, "draws": 200, "seed": 5, "symmetry": False}
    home = ob.nuts(target, **how)
    with ThreadPoolExecutor(1) as pool:
        away = pool.submit(ob.nuts, target, client=address, checkpoint=tmp_path / "kept", **how)
        until(lambda: task_processes(tmp_path) == 2 or away.done())
        kill_worker(worker)
        same(home, away.result(), "adaptation")
    # Without a folder the draws come as they are, and with what a Stan program is.
    program = ob.stan_program(PROGRAM, {"y": Y})
    few = {**how, "chains": 2, "draws": 50}
    same(ob.nuts(program, **few), ob.nuts(program, client=address, **few), "adaptation")
    other = {**tasks.versions(), "onebasin": "0.0.1"}
    monkeypatch.setattr(tasks, "versions", lambda: other)
    with pytest.raises(TaskError, match=r"instead of 0\.0\.1"):
        ob.nuts(target, client=address, **how)


def test_fits_paths_and_modes_are_those_of_home(guide):
    target, program = ob.numpyro_model(model), ob.stan_program(PROGRAM, {"y": Y})
    for method, of, how in (
        (ob.advi, target, {"iterations": 300, "draws": 50}),
        (ob.pathfinder, program, {"paths": 3, "draws": 50}),
        (ob.sample_modes, target, {"starts": 5, "warmup": 50, "draws": 50}),
    ):
        how |= {"seed": 5, "symmetry": False}
        same(method(of, **how), method(of, client=guide[1], **how))
    home = ob.find_modes(target, starts=5)
    away = ob.find_modes(target, starts=5, client=guide[1])
    assert (str(home), home.optima[0].height) == (str(away), away.optima[0].height)


def test_simulations_have_the_ranks_of_home(guide):
    def normal(y=None):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mu, 1).expand([5]), obs=y)

    family = ob.truth.Family.of_numpyro(normal, observed="y")
    how = {"simulations": 60, "seed": 1}
    method = ob.Nuts(chains=1, warmup=100, draws=100)
    home = ob.calibrate(family, method, **how)
    assert ob.calibrate(family, method, client=guide[1], **how).to_dict() == home.to_dict()


def test_a_study_makes_the_cells_of_home(guide, start, tmp_path):
    words = ("study", "relu-teacher", "--engine", "numpyro", "--parametrisations", "free,ordered")
    words += ("--only", "*.nuts.*", "--chains", "2", "--warmup", "50", "--draws", "50")
    command = (sys.executable, "-c", RUN, *words, "--no-progress", "--out")
    for folder, more in (("away", ("--scheduler", guide[1])), ("home", ())):
        program = start(*command, folder, *more)
        assert program.wait(900) == 0
    assert json.loads((tmp_path / "away/run.json").read_text())["status"] == "done"
    for name in ("free", "ordered"):
        home, away = (
            ob.open_posterior(tmp_path / folder / "posteriors" / f"{name}.nuts.numpyro.nc")
            for folder in ("home", "away")
        )
        same(home, away, "adaptation")
