"""A study on Dask workers in processes of their own, as the guide shows it: killed, stopped, doubled."""

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
import pytest

from onebasin.inference.runs.posterior import open_posterior

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "cluster.md"
MARK = "ONEBASIN_TEST_OF_WORKERS"
ONEBASIN = (
    sys.executable,
    "-c",
    "import sys; from onebasin.cli.main import main; sys.exit(main())",
)
STUDY = (
    *("study", "relu-teacher", "--engine", "numpyro", "--parametrisations", "free,ordered"),
    *("--chains", "2", "--warmup", "50", "--draws", "50", "--no-progress"),
)
LONG = (
    *("study", "boston", "--splits", "2", "--parametrisations", "free", "--chains", "1"),
    *("--warmup", "100000", "--draws", "10", "--no-progress"),
)


def free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Start programs that end with the test."""
    programs = []

    def start(*words: str) -> subprocess.Popen:
        environment = os.environ | {MARK: str(tmp_path)}
        with (tmp_path / f"program-{len(programs)}.log").open("wb") as log:
            programs.append(
                subprocess.Popen(words, stdout=log, stderr=log, cwd=tmp_path, env=environment)
            )
        return programs[-1]

    yield start
    for program in programs:
        program.kill()
        program.wait(30)


@pytest.fixture
def guide(start) -> tuple[list[subprocess.Popen], str]:
    """Scheduler and workers by the lines of the guide, on another port; returns them and the address."""
    text = GUIDE.read_text(encoding="utf-8").replace("8786", str(free_port()))
    lines = re.findall(r"^dask (?:scheduler|worker) .*$", text, re.MULTILINE)
    assert len(lines) == 3
    (address,) = set(re.findall(r"--scheduler (tcp://127\S+)", text))
    return [start(sys.executable, "-m", *line.split()) for line in lines], address


def cell_processes(place: Path) -> list[int]:
    """Processes of cells that belong to this test."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            mine = f"{MARK}={place}".encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if mine and b"onebasin.studies.lab.cell_process" in words:
            found.append(int(folder.name))
    return found


def until(holds: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def drawn(out: Path) -> dict[str, np.ndarray]:
    paths = sorted((out / "posteriors").glob("*.nc"))
    trees = {path.stem: open_posterior(path)["posterior"].to_dataset() for path in paths}
    return {f"{key}/{n}": v.values for key, tree in trees.items() for n, v in tree.items()}


def said(place: Path, number: int) -> str:
    return (place / f"program-{number}.log").read_text()


def test_the_guides_workers_draw_what_one_process_draws_though_one_is_killed(
    guide, start, tmp_path
):
    (_, worker, _), address = guide
    study = start(*ONEBASIN, *STUDY, "--out", "graph", "--scheduler", address)
    until(lambda: len(cell_processes(tmp_path)) == 2)
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    for pid in (worker.pid, *map(int, children)):  # the nanny, which would start another, first
        os.kill(pid, signal.SIGKILL)
    assert study.wait(900) == 0, said(tmp_path, 3)
    assert json.loads((tmp_path / "graph/run.json").read_text())["status"] == "done"
    assert start(*ONEBASIN, *STUDY, "--out", "one").wait(900) == 0
    graph, one = drawn(tmp_path / "graph"), drawn(tmp_path / "one")
    assert len(one) == 2 * 3 * 5
    assert graph.keys() == one.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(graph[name], values)
