"""Making the cells: by the methods of the inference room, by distillation, by what a user has added."""

from __future__ import annotations

from dataclasses import replace

import xarray as xr

from onebasin.base.errors import InferenceError
from onebasin.inference import Symmetrised
from onebasin.models import NetworkTarget
from onebasin.stan import StanError

from ..lab import Cell, CellFailed, Context, Outcomes
from ..lab.making import sample, symmetrise
from .added import Own, posterior_of
from .design import Config
from .methods import METHODS, Distilling


def make(config: Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Make a cell's posterior; a method that cannot is a result, and no error of the leaderboard's."""
    target = context.target
    assert target is not None, "every cell has a target"
    if isinstance(cell.settings, Own):
        return posterior_of(cell.method, cell.settings, target, cell.seed, cell.problem)
    try:
        if isinstance(cell.settings, Symmetrised):
            return symmetrise(cell, context, cell.settings)
        if isinstance(cell.settings, Distilling):
            return _distilled(cell, target, outcomes.by_key(cell.inputs[0]))
        return sample(replace(cell, method=METHODS[cell.method].word), context)
    except (InferenceError, StanError) as error:
        raise CellFailed(str(error)) from error


def _distilled(cell: Cell, target: object, draws: xr.DataTree) -> xr.DataTree:
    from onebasin.analysis.gaussian.distillation import distil

    assert isinstance(target, NetworkTarget), "what predicts is distilled"
    settings: Distilling = cell.settings
    found = distil(draws, target.x, settings=settings.distillation, seed=cell.seed)
    return found.sample(settings.draws, seed=cell.seed, predictive_mb=0)
