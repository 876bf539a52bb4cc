"""Several cells at once: the outcomes of one after another, whatever is killed, broken or stopped on the way."""

import json
import os
import pickle
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr
from distributed import LocalCluster, get_worker

from onebasin.base.errors import Interrupted, InUse, RunCancelled, StudyError, WriteError
from onebasin.base.files.locks import locked
from onebasin.base.notices import notice
from onebasin.studies.lab import (
    Cell,
    CellFailed,
    Context,
    Outcomes,
    Study,
    Text,
    cell_process,
    driver,
)
from onebasin.studies.lab.cell_files import CellFiles
from onebasin.studies.lab.cell_process import (
    Answer,
    carry_out,
    environment,
    start_cell,
    write_order,
)
from onebasin.studies.lab.driver import Schedule, run_cells
from onebasin.studies.lab.folder import open_run
from onebasin.studies.lab.making import MadeCell, Recipe, make_cell

from ...each import each


@dataclass(frozen=True)
class Plan:
    """Settings of a cell: what happens while it is made."""

    event: str = ""
    chains: int = 1


@dataclass(frozen=True)
class Config:
    events: tuple[str, ...] = ("", "", "")
    marker: str = ""


def cells(config: Config) -> tuple[Cell, ...]:
    """Cells of their own, and one that is made from all of them."""
    plans = [Cell(f"p{i}", "toy", "numpy", Plan(e), i) for i, e in enumerate(config.events)]
    return (*plans, Cell("sum", "toy", "numpy", Plan(), 0, inputs=tuple(c.key for c in plans)))


def make(config: Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Draw numbers, or do as the settings say."""
    happen(cell.settings.event, Path(config.marker or os.devnull))
    values = [outcomes.by_key(key)["posterior"]["mu"].values for key in cell.inputs]
    own = np.random.default_rng(cell.seed).normal(size=(1, 5))
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"mu": (("chain", "draw"), own + np.sum(values, axis=0))})}
    )


def happen(event: str, marker: Path) -> None:
    if event == "error":
        raise RuntimeError("a bug")
    if event == "failure":
        raise CellFailed("no mode was found")
    if event == "disk":
        raise WriteError(Path("p.nc"), "p.nc cannot be written (No space left on device).")
    if event == "killed once" and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), 9)
    notice("there is a notice")
    if event == "slow":
        marker.touch()
        time.sleep(60)


def study(**changes: Any) -> Study:
    nothing = Text("", lambda frames: (), lambda config, frames: ())
    said: dict[str, Any] = {"measures": lambda config, outcomes: {}, "claims": (), "views": ()}
    how = {"configure": Config, "cells": cells, "target": no_target, "make": make, "text": nothing}
    return Study(**said, **(how | changes))


def no_target(config: Config, cell: Cell) -> None:
    return None


@pytest.fixture
def run(tmp_path):
    """Run the toy study in a folder; returns outcomes and what was said."""

    def run(config: Config | None = None, where: str = "run", **how: Any) -> tuple[Outcomes, list]:
        config, said = config or Config(), []
        opened = open_run(
            tmp_path / where, study="toy", config=config, command=[], resume=True, force=True
        )
        schedule = Schedule(**({"workers": 2} | how))
        with opened:
            outcomes = run_cells(
                study(), config, opened, progress=False, say=said.append, schedule=schedule
            )
        return outcomes, said

    return run


@pytest.fixture
def at_once(monkeypatch):
    """Make cells in threads of this process, for the sake of time."""

    def here(order, *, cores, cancel, hear):
        return carry_out(order, lambda line: hear("says", line))

    start_by(monkeypatch, here)


def start_by(monkeypatch: pytest.MonkeyPatch, start: Callable[..., Answer]) -> None:
    """Have cells made by a function, here and on workers."""
    monkeypatch.setattr(driver, "start_cell", start)
    monkeypatch.setattr(cell_process, "start_cell", start)


def values(outcomes: Outcomes) -> dict[str, np.ndarray]:
    return {cell.key: outcomes.tree(cell)["posterior"]["mu"].values for cell in outcomes}


def test_a_graph_has_the_outcomes_of_one_after_another(run, at_once):
    graph, said = run()
    serial, _ = run(where="serial", workers=None)
    assert list(graph) == list(serial) == list(cells(Config()))
    for key, drawn in values(serial).items():
        np.testing.assert_array_equal(values(graph)[key], drawn)
    assert said[-1] == "[4/4] sum, toy, numpy: done in 0 s; 4 of 4 cells have ended"
    assert not graph.failures
    again, said = run()
    assert list(again) == list(graph)
    assert sum(line.endswith(": there already") for line in said) == 4


def test_what_is_there_takes_no_process(run, at_once, monkeypatch, tmp_path):
    first, _ = run()
    posteriors = tmp_path / "run" / "posteriors"
    (posteriors / "sum.toy.numpy.nc").unlink()
    (posteriors / "p1.toy.numpy.nc").unlink()
    made, here = [], driver.start_cell

    def counted(order, **how):
        made.append([one.cell.key for one in pickle.loads(order)[2]])
        return here(order, **how)

    start_by(monkeypatch, counted)
    again, said = run()
    assert made == [[], list(cells(Config())[-1].inputs)]
    assert list(again) == list(first)
    for key, drawn in values(first).items():
        np.testing.assert_array_equal(values(again)[key], drawn)
    assert sum(line.endswith(": there already") for line in said) == 2
    start_by(monkeypatch, None)
    assert list(run()[0]) == list(first)


def test_workers_that_join_later_share_the_cells(run, monkeypatch):
    made = []

    def at_work(order, *, cores, cancel, hear):
        made.append(get_worker().address)
        time.sleep(1)
        return carry_out(order, lambda line: None)

    start_by(monkeypatch, at_work)
    quietly = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, threads_per_worker=1, processes=False, **quietly) as cluster:
        threading.Timer(1, cluster.scale, [2]).start()
        run(Config(("",) * 4), workers=None, scheduler=cluster.scheduler_address)
    assert sorted(Counter(made[:4]).values()) == [2, 2]


def test_failures_take_what_depends_on_them_and_nothing_else(run, at_once, tmp_path):
    graph, said = run(Config(("", "failure", "error")), retries=2)
    assert [cell.problem for cell in graph] == ["p0"]
    reasons = {cell.problem: reason for cell, reason in graph.failures.items()}
    assert reasons["p1"] == "no mode was found"
    assert reasons["p2"] == "RuntimeError: a bug"
    assert reasons["sum"] == "made from p1.toy.numpy, which failed: no mode was found"
    assert [cell.problem for cell in graph.broken] == ["p2"]
    tried = "[3/4] p2, toy, numpy: failed, and is tried again (2 of 2): RuntimeError: a bug"
    assert said.count(tried) == 1
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cells"]["p2.toy.numpy"]["message"] == "RuntimeError: a bug"


def test_a_full_disk_stops_the_graph_and_says_what_is_kept(run, at_once):
    with pytest.raises(StudyError, match=r"No space left.*; [0-2] of 4 cells are .* kept in "):
        run(Config(("", "disk", "")))


def test_a_worker_that_is_not_set_up_stops_the_graph(run, at_once, monkeypatch):
    versions = iter([{"jax": "0.10"}, {"jax": "0.9"}])  # an order is written, then read
    monkeypatch.setattr(cell_process, "_versions", lambda: next(versions))
    with pytest.raises(StudyError, match=r" with jax 0\.9 instead of .*; 0 of 4 cells are finish"):
        run(workers=1)


def test_an_interrupt_stops_what_is_under_way(run, monkeypatch):
    events = []

    def wait(order, *, cores, cancel, hear):
        events.append(cancel)
        if len(events) == 2:
            hear("says", "both at work")
        assert cancel.wait(120)  # on a busy machine the interrupt takes its time
        raise RunCancelled("stopped")

    def hear(self, cell, text):
        if text == "both at work":
            threading.Thread(target=lambda: os.kill(os.getpid(), 2)).start()

    start_by(monkeypatch, wait)
    monkeypatch.setattr(driver._Told, "hear", hear)
    with pytest.raises(Interrupted, match="0 of 4 cells are finished and kept"):
        run()
    deadline = time.monotonic() + 10
    while not all(event.is_set() for event in events) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [event.is_set() for event in events] == [True, True]


MODULE = "onebasin_toy_for_processes"


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """The toy study's recipe, from a module that other processes can import."""
    source = Path(__file__).read_text(encoding="utf-8")
    begin = source.index("@dataclass(frozen=True)\nclass Plan")
    end = source.index("def study(")
    names = (
        "import os, time\nfrom dataclasses import dataclass\nfrom pathlib import Path\n"
        "import numpy as np\nimport xarray as xr\n"
        "from onebasin.base.errors import WriteError\n"
        "from onebasin.base.notices import notice\n"
        "from onebasin.studies.lab import Cell, CellFailed, Context, Outcomes\n\n"
    )
    (tmp_path / f"{MODULE}.py").write_text(names + source[begin:end])
    monkeypatch.syspath_prepend(tmp_path)
    inherited = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), inherited))))
    module = __import__(MODULE)
    (tmp_path / "posteriors").mkdir()
    files = CellFiles(tmp_path / "posteriors", resume=True)
    marker = str(tmp_path / "marker")

    def recipe(*events: str) -> tuple[Recipe, tuple[Cell, ...]]:
        config = module.Config(events, marker)
        return Recipe(lambda config, cell: None, module.make, config, files), module.cells(config)

    return recipe


def in_process(recipe: Recipe, cell: Cell, **how: Any) -> Answer:
    how = {"cores": 1, "cancel": threading.Event(), "hear": lambda word, line: None} | how
    return start_cell(write_order(recipe, cell, ()), **how)


def test_a_killed_process_is_told_and_the_next_one_makes_the_cell(recipe):
    made_by, (cell, _) = recipe("killed once")
    said: list[str] = []
    killed = in_process(made_by, cell)
    assert killed["broken"] == "its process was ended by SIGKILL, perhaps because memory ran out"
    answer = in_process(made_by, cell, hear=lambda word, line: said.append(line))
    assert said == ["there is a notice"]
    made = MadeCell(cell, **answer["made"])
    assert (made.failure, made.found, made.broken) == (None, False, False)
    again = make_cell(made_by, cell, (), progress=False, say=said.append)
    assert (again.mark, again.found) == (made.mark, True)


def test_an_error_in_a_process_comes_back_with_where_it_was(recipe):
    made_by, (cell, _) = recipe("error")
    answer = in_process(made_by, cell)
    assert answer["broken"] == "RuntimeError: a bug"
    assert 'raise RuntimeError("a bug")' in answer["trace"]


def test_a_process_ends_when_it_is_stopped(recipe, tmp_path):
    made_by, (cell, _) = recipe("slow")
    cancel = threading.Event()

    def stop() -> None:
        while not (tmp_path / "marker").exists():
            time.sleep(0.05)
        cancel.set()

    threading.Thread(target=stop).start()
    with pytest.raises(RunCancelled):
        in_process(made_by, cell, cancel=cancel)
    with locked(made_by.files.posterior_path(cell.key), argument="cell", alongside=True):
        pass  # the lock of the killed process is free


def test_processes_have_the_cores_that_they_are_given():
    given = environment(2)
    assert given["ONEBASIN_CORES"] == given["NPROC"] == given["OMP_NUM_THREADS"] == "2"


def test_processes_keep_freed_memory_although_dask_has_its_workers_give_it_back(monkeypatch):
    for name, value in dask.config.get("distributed.nanny.pre-spawn-environ").items():
        monkeypatch.setenv(name, str(value))
    assert "MALLOC_TRIM_THRESHOLD_" in os.environ  # else there is nothing to leave out
    assert "MALLOC_TRIM_THRESHOLD_" not in environment(2)


def test_a_cell_that_another_process_makes_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("onebasin.studies.lab.cell_files._LOOK_SECONDS", 0.01)
    files, said, made = CellFiles(tmp_path, resume=True), [], []

    def other() -> None:
        with files.held("a", said.append):
            made.append("second")

    with files.held("a", said.append):
        second = threading.Thread(target=other)
        second.start()
        while not said:
            time.sleep(0.01)
        made.append("first")
    second.join()
    assert made == ["first", "second"]
    (line,) = said
    assert line.startswith("waits: ")
    assert f"process {os.getpid()} " in line
    assert line.endswith("is writing")
    assert list(tmp_path.iterdir()) == []
    with files.held("a", said.append), pytest.raises(InUse):
        locked(files.posterior_path("a"), argument="a", alongside=True).__enter__()


@each(
    ("how", "message"),
    [
        ({"scheduler": "slurm"}, "`--scheduler` is 'slurm'; give local, or the address of"),
        ({"workers": 0}, "`--workers` is 0; it must be a whole number from 1"),
        ({"workers": 2, "scheduler": "tcp://a:1"}, "`--workers` does not apply to a scheduler"),
        ({"retries": -1}, "`--retries` is -1; it must be a whole number from 0"),
    ],
)
def test_a_schedule_that_is_none_is_refused(how, message):
    with pytest.raises(StudyError, match=message):
        Schedule(**how)


def test_a_scheduler_that_does_not_answer_is_named(run, monkeypatch):
    monkeypatch.setattr("onebasin.studies.lab.cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(
        StudyError, match=r"`--scheduler` is tcp://127.0.0.1:9, where no Dask sched"
    ):
        run(scheduler="tcp://127.0.0.1:9", workers=None)


def test_only_a_scheduler_needs_distributed(run, at_once, monkeypatch):
    root = Path(driver.__file__).resolve().parents[2]
    found = [
        (path.name, line)
        for room in ("truth", "studies", "cli")
        for path in (root / room).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*(from|import) (distributed|\.*(lab\.)?cluster)\b", line)
    ]
    assert sorted(found) == [
        (
            "cluster.py",
            "from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker",
        ),
        ("driver.py", "            from .cluster import workers_of"),  # when it is called
    ]
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "onebasin.studies.lab.cluster", raising=False)
    assert len(list(run()[0])) == 4
    with pytest.raises(StudyError, match=r"needs .* distributed.*pip install 'onebasin\[cluster"):
        run(where="cluster", scheduler="tcp://127.0.0.1:9", workers=None)


@each(
    ("cores", "chains", "workers", "shares"),
    [
        (2, 4, None, (1, 2)),  # a cell's chains use both: in this process
        (8, 4, None, (2, 4)),
        (8, 1, None, (4, 2)),  # no more at once than there are cells
        (8, 4, 3, (3, 1)),
    ],
)
def test_cores_are_shared_out(monkeypatch, cores, chains, workers, shares):
    monkeypatch.setattr(driver, "available_cores", lambda: cores)
    four = tuple(replace(cell, settings=Plan(chains=chains)) for cell in cells(Config()))
    assert driver._shares(four, workers) == shares
