"""A cell in its own process, which is killed once."""

import os
import shutil
import threading
from typing import Any

import pytest

from onebasin.studies.lab import Cell
from onebasin.studies.lab.cell_process import Answer, start_cell, write_order
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


@pytest.mark.full
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
