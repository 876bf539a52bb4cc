"""Tests of running cells, serially and in parallel: which are made, reused, or failed with their inputs."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import xarray as xr

from onebasin.base.errors import InferenceError, StudyError
from onebasin.base.processes import task_process, tasks
from onebasin.studies.lab.run import opened, run_cells
from onebasin.studies.lab.study import Cell, Context, Outcomes, Study


@dataclass(frozen=True)
class Plan:
    """Settings of a cell: the event that happens while it is made."""

    event: str = ""
    power: float = 1.0
    chains: int = 1


@dataclass(frozen=True)
class Config:
    events: tuple[str, ...] = ("", "")
    seed: int = 0
    power: float = 1.0
    noise: str = "loud"


def cells(config: Config) -> tuple[Cell, ...]:
    """Return independent cells, a cell made from all of them, and a cell made from that one."""
    seeds = [config.seed, 7, 8]
    own = [Cell(f"p{i}", "toy", "numpy", Plan(e), seeds[i]) for i, e in enumerate(config.events)]
    inputs = tuple(cell.key for cell in own)
    both = Cell("sum", "toy", "numpy", Plan(power=config.power), 0, inputs=inputs)
    return (*own, both, Cell("last", "toy", "numpy", Plan(), 0, inputs=(both.key,)))


def make(config: Config, cell: Cell, context: Context) -> xr.DataTree:
    """Draw numbers, sum inputs, or raise the error in the settings."""
    if cell.settings.event == "error":
        raise RuntimeError("a bug")
    if cell.settings.event == "failure":
        raise InferenceError("no mode was found")
    values = [tree["posterior"]["mu"].values for tree in context.inputs]
    own = np.random.default_rng(cell.seed).normal(size=(1, 5))
    mu = np.sum(values, axis=0) * cell.settings.power if values else own
    return xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": (("chain", "draw"), mu)})})


STUDY = Study(Config, cells, lambda config, cell: None, lambda config, outcomes: {}, (), make=make)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the study in a folder and returns outcomes, messages and the problems made."""
    monkeypatch.setattr("onebasin.base.machine.available_cores", lambda: 1)

    def run(config: Config = STUDY.configure(), where: str = "run", **how: Any) -> tuple:  # noqa: B008
        said: list[str] = []
        with opened(tmp_path / where, study="toy", config=None, command=[]) as new:
            outcomes = run_cells(STUDY, config, new, say=said.append, **how)
        made = [line.split("] ")[1].split(",")[0] for line in said if ": done in" in line]
        return outcomes, said, made

    return run


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Run tasks in threads of this process, to save time."""

    def start(order, cores, cancel, hear):
        hear({})
        return task_process.carried_out(order)

    monkeypatch.setattr(tasks, "start", start)


def values(outcomes: Outcomes) -> dict[str, np.ndarray]:
    return {cell.problem: outcomes.tree(cell)["posterior"]["mu"].values for cell in outcomes}


def test_cells_are_made_from_their_inputs_one_by_one_or_several_at_once(run, tmp_path):
    graph, said, made = run(Config(power=3.0), workers=2)
    assert said[-1] == "[4/4] last, toy, numpy: done in 0 s; 4 of 4 cells finished"
    assert sorted(made) == ["last", "p0", "p1", "sum"]
    assert not graph.failures
    found = values(graph)
    np.testing.assert_array_equal(found["sum"], (found["p0"] + found["p1"]) * 3.0)
    np.testing.assert_array_equal(found["last"], found["sum"])
    serial, _, made = run(Config(power=3.0), "serial")
    assert made == ["p0", "p1", "sum", "last"]
    assert list(graph) == list(serial) == list(cells(Config(power=3.0)))
    for problem, drawn in values(serial).items():
        np.testing.assert_array_equal(found[problem], drawn)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cells"]["p0.toy.numpy"]["status"] == "done"


@pytest.mark.parametrize(
    ("config", "remade"),
    [
        (Config(), []),
        (Config(noise="quiet"), []),  # A setting that no cell uses.
        (Config(seed=1), ["p0", "sum", "last"]),  # An input changed, with all that depends on it.
        (Config(power=2.0), ["sum", "last"]),  # The settings of the cell changed.
    ],
)
def test_finished_cells_are_taken_again_and_changed_ones_made_with_what_depends_on_them(
    run, config, remade
):
    run()
    again, said, made = run(config)
    assert made == remade
    assert sum(line.endswith(": already done") for line in said) == 4 - len(remade)
    found = values(again)
    np.testing.assert_array_equal(found["last"], (found["p0"] + found["p1"]) * config.power)


def test_a_damaged_posterior_is_made_again(run, tmp_path, caplog):
    run()
    path = tmp_path / "run/posteriors/p1.toy.numpy.nc"
    path.write_bytes(path.read_bytes()[:-40])
    _, _, made = run()
    assert made == ["p1"]
    assert "p1.toy.numpy.nc is missing or damaged" in caplog.text


def test_failures_take_what_depends_on_them_and_nothing_else(run, tmp_path):
    run()
    outcomes, said, made = run(Config(("", "failure", "error")), workers=2, retries=2)
    assert made == []
    assert [cell.problem for cell in outcomes] == ["p0"]
    reasons = {cell.problem: reason for cell, reason in outcomes.failures.items()}
    assert reasons["p1"] == "no mode was found"
    assert reasons["p2"] == "RuntimeError: a bug"
    assert reasons["sum"] == "made from p1.toy.numpy, which failed: no mode was found"
    assert reasons["last"] == f"made from sum.toy.numpy, which failed: {reasons['sum']}"
    tried = "[3/5] p2, toy, numpy: failed, trying again: RuntimeError: a bug"
    assert said.count(tried) == 2
    record = json.loads((tmp_path / "run" / "run.json").read_text())["cells"]
    assert [key for key, cell in record.items() if "trace" in cell] == ["p2.toy.numpy"]
    assert record["p2.toy.numpy"]["message"] == "RuntimeError: a bug"
    assert 'raise RuntimeError("a bug")' in record["p2.toy.numpy"]["trace"]
    # Results of other inputs are gone, and a cell that failed by itself is not tried again.
    assert [p.name for p in (tmp_path / "run/posteriors").glob("*.nc")] == ["p0.toy.numpy.nc"]
    _, said, _ = run(Config(("", "failure", "error")), retries=0)
    assert "[2/5] p1, toy, numpy: failed before: no mode was found" in said
    assert "[3/5] p2, toy, numpy: failed: RuntimeError: a bug" in said
    # After the inputs succeed, the cells that need them do so too.
    outcomes, _, made = run()
    assert made == ["p1", "sum", "last"]
    assert not outcomes.failures


def test_cells_are_named_by_patterns(run):
    some, _, _ = run(patterns=["p1.*"])
    assert [cell.problem for cell in some] == ["p1"]
    more, _, made = run(patterns=["sum.*"])  # With its inputs and the finished cells.
    assert made == ["p0", "sum"]
    assert [cell.problem for cell in more] == ["p0", "p1", "sum"]
    with pytest.raises(StudyError, match=r"`--only` is 'q', which matches none of the 4 cell\(s\)"):
        run(patterns=["q"])
