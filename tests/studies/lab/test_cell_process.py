"""A cell in a process of its own: what it says and brings back, whatever kills, breaks or stops it."""

import os
import shutil
import threading
import time
from typing import Any

import dask
import pytest

from onebasin.base.errors import InUse, RunCancelled
from onebasin.base.files.locks import locked
from onebasin.studies.lab import Cell
from onebasin.studies.lab.cell_process import Answer, environment, start_cell, write_order
from onebasin.studies.lab.folder import CellFiles
from onebasin.studies.lab.making import MadeCell, Recipe, make_cell

from . import toy_cells

MODULE = "onebasin_toy_for_processes"


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """The toy study's recipe, from a module that other processes can import."""
    shutil.copy(toy_cells.__file__, tmp_path / f"{MODULE}.py")
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


def test_processes_have_the_cores_that_they_are_given_and_keep_freed_memory(monkeypatch):
    """Although Dask has its workers give it back."""
    for name, value in dask.config.get("distributed.nanny.pre-spawn-environ").items():
        monkeypatch.setenv(name, str(value))
    assert "MALLOC_TRIM_THRESHOLD_" in os.environ  # else there is nothing to leave out
    given = environment(2)
    assert given["ONEBASIN_CORES"] == given["NPROC"] == given["OMP_NUM_THREADS"] == "2"
    assert "MALLOC_TRIM_THRESHOLD_" not in given


def test_a_cell_that_another_process_makes_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("onebasin.studies.lab.folder._LOOK_SECONDS", 0.01)
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
