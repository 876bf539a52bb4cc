"""Making the cells that follow from others: aligned draws, Gaussians, rows, trained pairs."""

import json
from dataclasses import asdict, replace

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align, switching
from onebasin.analysis.gaussian.distillation import distil
from onebasin.base.progress import ProgressBars
from onebasin.models import BayesianNetwork, NetworkTarget
from onebasin.posteriors import schema
from onebasin.truth.problems.images import image_split

from ..lab import Cell, Context, Outcomes
from ..lab.making import sample
from ..lab.posteriors import prior_draws, tree_of
from . import design
from .pairs import train_dynamics, train_swaps
from .predictions import make_row

LAGS = (1, 20, 100)


def make(config: design.Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Make a cell's posterior."""
    inputs = [outcomes.by_key(key) for key in cell.inputs]
    if isinstance(cell.settings, design.AlignSettings):
        return make_aligned(inputs[0], design.network(config), cell, progress=context.progress)
    if isinstance(cell.settings, design.RowSettings):
        return make_row(inputs[0], cell, image_split(config.size, cell.seed).test)
    trained = design.target(config, cell)
    if cell.key == design.DYNAMICS:
        return train_dynamics(trained, cell.settings, cell.seed)
    if cell.key == design.SWAPS:
        return train_swaps(trained, cell.settings, cell.seed)
    if cell.key == design.REFINED:
        return _refine(inputs[0], trained, cell, progress=context.progress)
    if cell.key == design.DISTILLED:
        draws, aligned = inputs
        return _distil(draws, aligned, trained, cell)
    return sample(cell, context)


def make_aligned(
    tree: xr.DataTree, model: BayesianNetwork, cell: Cell, *, progress: bool = False
) -> xr.DataTree:
    """Align draws, and measure how labels changed and what alignment gained beside noise.

    The gain on draws from the prior, which have no basin, stands beside that on the posterior's.
    """
    symmetry, how = design.permutations_of(model), asdict(cell.settings)
    with ProgressBars(progress) as bars:
        bar = bars.add("aligning draws", 100)
        alignment = align(
            tree,
            symmetry,
            **how,
            progress=lambda done, total: bars.move(bar, 100 * done // total),
        )
    out = alignment.to_tree()
    del out.attrs[schema.WALL_TIME]  # that of the draws; the cell has its own
    if cell.settings.cost == "weights":
        found = switching(alignment, lags=_lags(tree), noise=True, seed=cell.seed)
        draws = prior_draws(model, tree["posterior"].to_dataset(), cell.seed)
        prior = tree_of({"posterior": draws}, {schema.MODEL: tree.attrs[schema.MODEL]})
        gained = {
            "prior_ratio": switching(align(prior, symmetry, **how), lags=(1,), noise=False).ratio
        }
        out.attrs["switching"] = json.dumps(found.to_dict() | gained)
    return out


def _lags(tree: xr.DataTree) -> tuple[int, ...]:
    longest = tree["posterior"].sizes["draw"]
    return tuple(lag for lag in LAGS if lag < longest) if longest > 1 else (1,)


def _refine(
    aligned: xr.DataTree, trained: NetworkTarget, cell: Cell, *, progress: bool
) -> xr.DataTree:
    """Fit a diagonal Gaussian through the ELBO, started at the mean of the aligned draws."""
    from onebasin.inference import infer

    return infer(
        trained,
        replace(cell.settings, family="meanfield"),
        engine="numpyro",
        seed=cell.seed,
        start=mean_of(aligned),
        progress=progress,
    )


def _distil(
    draws: xr.DataTree, aligned: xr.DataTree, trained: NetworkTarget, cell: Cell
) -> xr.DataTree:
    """Fit a diagonal Gaussian through the predictions of the draws as they came."""
    how: design.Distillation = cell.settings
    found = distil(
        draws, trained.x, start=mean_of(aligned), settings=how.distillation, seed=cell.seed
    )
    return found.sample(how.draws, seed=cell.seed, predictive_mb=0)


def mean_of(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Mean over all draws of every variable."""
    dataset = tree["posterior"].to_dataset()
    return {str(n): v.mean(("chain", "draw")).values for n, v in dataset.items()}
