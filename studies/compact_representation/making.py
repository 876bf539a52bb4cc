"""Making the cells that follow from others: aligned draws, Gaussians, rows, trained pairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import Alignment, align, switching
from onebasin.analysis.gaussian.distillation import distil
from onebasin.models import BayesianNetwork
from onebasin.models.symmetry.blocks import Symmetry, to_json

from ..console import alignment_bar
from ..lab.driver import sample
from ..lab.images import image_split
from ..lab.study import Cell, Context, Outcomes
from .design import DISTILLED, REFINED, AlignSettings, Config, aligned, permutations_of
from .pairs import train_dynamics, train_swaps
from .plan import Distillation
from .rows import make_row

if TYPE_CHECKING:
    from onebasin.models import NetworkTarget

LAGS = (1, 20, 100)


def make(config: Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Make a cell's posterior."""
    if cell.method.startswith("aligned-"):
        return make_aligned(outcomes.by_key(cell.inputs[0]), cell, context)
    if cell.method == "row":
        return make_row(
            outcomes.by_key(cell.inputs[0]), cell, image_split(config.size, cell.seed).test
        )
    if cell.key == REFINED:
        return _refine(outcomes.by_key(aligned("hmc", "mean")), cell, context)
    if cell.key == DISTILLED:
        return _distil(outcomes, cell, context)
    if cell.problem == "pair":
        train = train_dynamics if cell.method == "dynamics" else train_swaps
        return train(_network_target(context), cell.settings, cell.seed)
    return sample(cell, context)


def make_aligned(tree: xr.DataTree, cell: Cell, context: Context) -> xr.DataTree:
    """Align draws, and measure how labels changed and what alignment gained beside noise.

    The gain on draws from the prior, which have no basin, stands beside that on the posterior's.
    """
    settings: AlignSettings = cell.settings
    symmetry = permutations_of(BayesianNetwork.from_description(tree.attrs["model"]))
    with alignment_bar() if context.progress else nullcontext() as bar:
        alignment = _align(tree, symmetry, settings, bar)
    out = alignment.to_tree()
    del out.attrs["wall_time"]  # that of the draws; the cell has its own
    if settings.cost == "weights":
        found = switching(alignment, lags=_lags(tree), noise=True, seed=cell.seed)
        prior = switching(
            _aligned_prior(tree, symmetry, settings, cell.seed), lags=(1,), noise=False
        )
        measured = found.to_dict() | {"prior_ratio": prior.ratio}
        out.attrs["switching"] = json.dumps(measured)
    return out


def _align(
    tree: xr.DataTree,
    symmetry: Symmetry,
    settings: AlignSettings,
    progress: Callable[[int, int], None] | None = None,
) -> Alignment:
    return align(
        tree,
        symmetry,
        reference=settings.reference,
        cost=settings.cost,
        gauge=settings.gauge,
        progress=progress,
    )


def _lags(tree: xr.DataTree) -> tuple[int, ...]:
    longest = tree["posterior"].sizes["draw"]
    return tuple(lag for lag in LAGS if lag < longest) if longest > 1 else (1,)


def _aligned_prior(
    tree: xr.DataTree, symmetry: Symmetry, settings: AlignSettings, seed: int
) -> Alignment:
    """Align as many draws from the prior, which are as far apart as draws can be."""
    model = BayesianNetwork.from_description(tree.attrs["model"])
    rng = np.random.default_rng(seed)
    posterior = tree["posterior"].to_dataset()
    layers = model.network.layers
    scales = dict(
        zip((a.weight for a in layers), model.prior.weight_scales(len(layers)), strict=True)
    )
    scales |= zip((a.bias for a in layers), model.prior.bias_scales(len(layers)), strict=True)
    draws = {
        name: posterior[name].copy(data=scales[name] * rng.standard_normal(posterior[name].shape))
        for name in model.network.shapes
    }
    prior = xr.DataTree.from_dict({"posterior": xr.Dataset(draws)})
    prior.attrs = {"model": tree.attrs["model"], "symmetry": to_json(symmetry)}
    return _align(prior, symmetry, settings)


def _refine(mean_aligned: xr.DataTree, cell: Cell, context: Context) -> xr.DataTree:
    """Fit a diagonal Gaussian through the ELBO, started at the mean of the aligned draws."""
    from onebasin.inference import advi

    return advi(
        _network_target(context),
        family="meanfield",
        engine="numpyro",
        settings=cell.settings,
        seed=cell.seed,
        start=mean_of(mean_aligned),
        progress=context.progress,
    )


def _distil(outcomes: Outcomes, cell: Cell, context: Context) -> xr.DataTree:
    """Fit a diagonal Gaussian through the predictions of the draws as they came."""
    settings: Distillation = cell.settings
    draws, started = (outcomes.by_key(key) for key in cell.inputs)
    found = distil(
        draws,
        _network_target(context).x,
        start=mean_of(started),
        settings=settings.distillation,
        seed=cell.seed,
    )
    return found.to_posterior(draws, settings.draws, seed=cell.seed)


def mean_of(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Mean over all draws of every variable."""
    dataset = tree["posterior"].to_dataset()
    return {str(n): v.mean(("chain", "draw")).values for n, v in dataset.items()}


def _network_target(context: Context) -> NetworkTarget:
    from onebasin.models import NetworkTarget

    if not isinstance(context.target, NetworkTarget):
        raise TypeError(
            f"`target` is a {type(context.target).__name__}; a NetworkTarget is needed."
        )
    return context.target
