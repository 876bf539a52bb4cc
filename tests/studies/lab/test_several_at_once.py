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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import LocalCluster, get_worker

from onebasin.base.errors import Interrupted, RunCancelled, StudyError
from onebasin.studies.lab import Outcomes, cell_process, driver
from onebasin.studies.lab.cell_process import Answer, carry_out
from onebasin.studies.lab.driver import Schedule

from ...each import each
from .toy_cells import Config, Plan, cells, make, run_in, silent


@pytest.fixture
def run(tmp_path):
    """Run the toy study in a folder; returns outcomes and what was said."""

    def run(config: Config | None = None, where: str = "run", **how: Any) -> tuple[Outcomes, list]:
        study = silent(Config, cells, lambda config, cell: None, make)
        schedule = Schedule(**({"workers": 2} | how))
        return run_in(tmp_path / where, study, config or Config(), schedule=schedule)

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

    def hear(self, cell, word, text):
        if text == "both at work":
            threading.Thread(target=lambda: os.kill(os.getpid(), 2)).start()

    start_by(monkeypatch, wait)
    monkeypatch.setattr(driver.StudyProgress, "hear", hear)
    with pytest.raises(Interrupted, match="0 of 4 cells are finished and kept"):
        run()
    deadline = time.monotonic() + 10
    while not all(event.is_set() for event in events) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [event.is_set() for event in events] == [True, True]


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
