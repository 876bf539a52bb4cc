"""Making the cells: a calibration each, kept as a tree."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.gaussian import fit_gaussian
from onebasin.inference.calibration.calibrate import MEASURES, calibrate
from onebasin.inference.calibration.result import Calibration
from onebasin.models import schema
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.target import Target

from ..lab import Cell, Context, Outcomes
from ..lab.trees import tree_of
from .design import STEPS, Calibrating, Config, family_of

GROUP = "calibration"
_TEXT = "found"


def make(config: Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Calibrate a cell's method on its family."""
    how: Calibrating = cell.settings
    made_of_draws = {"gaussian": gaussian}.get(cell.method)
    method = "mclmc" if cell.method in STEPS else "nuts" if made_of_draws else cell.method
    found = calibrate(
        family_of(cell.problem),
        method,
        cell.engine,
        settings=how.method,
        simulations=how.simulations,
        seed=cell.seed,
        folder=context.checkpoint,
        after=made_of_draws,
        progress=context.progress,
    )
    tree = to_tree(found)
    if context.checkpoint is not None:
        for file in context.checkpoint.glob("ranks-*.npz"):
            file.unlink()
    return tree


def gaussian(target: Target, posterior: xr.DataTree, seed: int) -> xr.DataTree:
    """Align the draws, fit one Gaussian to them, and sample it."""
    aligned = align(posterior, equal_modes(target.symmetry), gauge="keep", threads=1).posterior
    return fit_gaussian(aligned, "full").sample(500, seed=seed, predictive_mb=0)


def to_tree(found: Calibration) -> xr.DataTree:
    """Lay out what was found as what a file can keep."""
    dims = ("simulation", "quantity")
    arrays: dict[str, Any] = {name: (dims, getattr(found, name)) for name in MEASURES}
    arrays["divergences"] = ("simulation", found.divergences)
    told = {
        name: getattr(found, name)
        for name in ("family", "method", "engine", "settings", "seed", "names", "failures")
    }
    arrays[_TEXT] = ((), json.dumps(told))
    return tree_of({schema.POSTERIOR: xr.Dataset(), GROUP: xr.Dataset(arrays)}, {})


def from_tree(tree: xr.DataTree) -> Calibration:
    """Read back what `to_tree` wrote."""
    group = tree[GROUP].to_dataset()
    told = json.loads(str(group[_TEXT].values))
    told |= {name: tuple(told[name]) for name in ("names", "failures")}
    arrays: dict[str, Any] = {
        name: np.asarray(group[name].values) for name in (*MEASURES, "divergences")
    }
    return Calibration(**told, **arrays)
