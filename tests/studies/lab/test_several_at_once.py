"""Several cells at once have the outcomes of one after another, and fail one by one."""

import json
from typing import Any

import numpy as np
import pytest

from onebasin.base.processes import task_process, tasks
from onebasin.studies.lab import Outcomes
from onebasin.studies.lab.run import Schedule

from .toy_cells import Config, cells, make, run_in, silent


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
    """Run tasks in threads of this process, for the sake of time."""

    def start(order, cores, cancel, hear):
        hear({})
        return task_process.carried_out(order)

    monkeypatch.setattr(tasks, "start", start)


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
    assert not any("done in" in line for line in said)


def test_failures_take_what_depends_on_them_and_nothing_else(run, at_once, tmp_path):
    graph, said = run(Config(("", "failure", "error")), retries=2)
    assert [cell.problem for cell in graph] == ["p0"]
    reasons = {cell.problem: reason for cell, reason in graph.failures.items()}
    assert reasons["p1"] == "no mode was found"
    assert reasons["p2"] == "RuntimeError: a bug"
    assert reasons["sum"] == "made from p1.toy.numpy, which failed: no mode was found"
    assert [cell.problem for cell in graph.broken] == ["p2"]
    tried = "[3/4] p2, toy, numpy: failed, and is tried again: RuntimeError: a bug"
    assert said.count(tried) == 2
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cells"]["p2.toy.numpy"]["message"] == "RuntimeError: a bug"
