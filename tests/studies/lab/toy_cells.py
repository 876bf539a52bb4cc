"""Cells that draw numbers, fail or are killed as their settings say: a module that other processes can import too."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.run_log import notice
from onebasin.studies.lab import Cell, CellFailed, Context, Outcomes, Study


@dataclass(frozen=True)
class Plan:
    """Settings of a cell: what happens while it is made."""

    event: str = ""
    chains: int = 1


@dataclass(frozen=True)
class Config:
    events: tuple[str, ...] = ("", "", "")
    marker: str = ""


def silent(configure: Any, cells: Any, target: Any, make: Any) -> Study:
    """A study that measures and says nothing."""
    return Study(configure, cells, target, lambda config, outcomes: {}, (), make=make)


def run_in(folder: Path, study: Study, config: Any, **how: Any) -> tuple[Outcomes, list[str]]:
    """Run a study in a folder; returns outcomes and what was said."""
    from onebasin.studies.lab.run import Schedule, open_run, run_cells

    said: list[str] = []
    how = {"schedule": Schedule()} | how
    new = open_run(folder, study="toy", config=None, command=[], force=False)
    with new as run:
        return run_cells(study, config, run, progress=False, say=said.append, **how), said


def cells(config: Config) -> tuple[Cell, ...]:
    """Cells of their own, and one that is made from all of them."""
    plans = [Cell(f"p{i}", "toy", "numpy", Plan(e), i) for i, e in enumerate(config.events)]
    return (*plans, Cell("sum", "toy", "numpy", Plan(), 0, inputs=tuple(c.key for c in plans)))


def make(config: Config, cell: Cell, context: Context) -> xr.DataTree:
    """Draw numbers, or do as the settings say."""
    happen(cell.settings.event, Path(config.marker or os.devnull))
    values = [tree["posterior"]["mu"].values for tree in context.inputs]
    own = np.random.default_rng(cell.seed).normal(size=(1, 5))
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"mu": (("chain", "draw"), own + np.sum(values, axis=0))})}
    )


def happen(event: str, marker: Path) -> None:
    if event == "error":
        raise RuntimeError("a bug")
    if event == "failure":
        raise CellFailed("no mode was found")
    if event == "killed once" and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), 9)
    notice("there is a notice")
