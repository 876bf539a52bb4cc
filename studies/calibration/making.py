"""Making the cells: a calibration each, kept as a tree."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.gaussian import fit_gaussian
from onebasin.analysis.gaussian.distillation import DistillationSettings, distil
from onebasin.inference.calibration.calibrate import MEASURES, calibrate
from onebasin.inference.calibration.inferring import After
from onebasin.inference.calibration.result import Calibration
from onebasin.inference.methods import as_word
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..lab import Cell, Context, Outcomes
from ..lab.posteriors import tree_of
from .design import STEPS, Calibrating, Config, family_of

GROUP = "calibration"
_TEXT = "found"
_SAMPLED = 500
"""Draws of a Gaussian that is made of draws."""


def make(config: Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Calibrate a cell's method on its family."""
    how: Calibrating = cell.settings
    after = _after(cell)
    method = "mclmc" if cell.method in STEPS else "nuts" if after else cell.method
    found = calibrate(
        family_of(cell.problem),
        as_word(method, how.method),
        cell.engine,
        simulations=how.simulations,
        seed=cell.seed,
        folder=context.checkpoint,
        after=after,
        progress=context.progress,
    )
    tree = to_tree(found)
    if context.checkpoint is not None:
        for file in context.checkpoint.glob("ranks-*.npz"):
            file.unlink()
    return tree


def _after(cell: Cell) -> After | None:
    """What is made of the draws, instead of which it is judged."""
    if cell.method == "gaussian":
        return gaussian
    return distilled(cell.settings.after) if cell.method == "distilled" else None


def gaussian(target: Target, posterior: xr.DataTree, seed: int) -> xr.DataTree:
    """Align the draws, fit one Gaussian to them, and sample it."""
    aligned = align(posterior, equal_modes(target.symmetry), gauge="keep", threads=1).posterior
    return fit_gaussian(aligned, "full").sample(_SAMPLED, seed=seed, predictive_mb=0)


def distilled(settings: DistillationSettings) -> After:
    """Distil the draws into one Gaussian, which predicts as they do, and sample it."""

    def distilled(target: Target, posterior: xr.DataTree, seed: int) -> xr.DataTree:
        assert isinstance(target, NetworkTarget), "only a network is approximated"
        found = distil(posterior, target.x, settings=settings, seed=seed)
        return found.sample(_SAMPLED, seed=seed, predictive_mb=0)

    return distilled


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
