"""Making the cells: fits side by side, draws aligned, and Gaussians of draws."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.gaussian import fit_gaussian
from onebasin.analysis.gaussian.distillation import distil
from onebasin.inference import Symmetrised
from onebasin.inference.density.evaluate import log_density
from onebasin.models import NetworkTarget
from onebasin.models.symmetry.blocks import Exchangeable, blocks_of
from onebasin.posteriors import schema

from ..lab import Cell, Context, Outcomes
from ..lab.making import sample, symmetrise
from ..lab.posteriors import tree_of
from .design import Aligning, Config, Distilling, Fits, OneGaussian

BOUND = "bound"
"""Attribute of a Gaussian's posterior: its ELBO, in nats."""


def make(config: Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Make a cell's posterior."""
    target = context.target
    assert isinstance(target, NetworkTarget), "every cell has a network"
    inputs = [outcomes.by_key(key) for key in cell.inputs]
    if isinstance(cell.settings, Fits):
        return _fits(cell, target, progress=context.progress)
    if isinstance(cell.settings, Symmetrised):
        return symmetrise(cell, context, cell.settings)
    if isinstance(cell.settings, Aligning):
        return _aligned(inputs[0], target, cell.settings)
    if isinstance(cell.settings, OneGaussian):
        return _gaussian(inputs[0], target, cell)
    if isinstance(cell.settings, Distilling):
        draws, aligned = inputs
        return _distilled(draws, aligned, target, cell)
    return sample(cell, context)


def _fits(cell: Cell, target: NetworkTarget, *, progress: bool) -> xr.DataTree:
    """Fit as often as asked for, fit i with the seed of the cell plus i."""
    from onebasin.inference import infer

    settings: Fits = cell.settings
    return side_by_side(
        [
            infer(
                target,
                settings.advi,
                engine="numpyro",
                seed=cell.seed + number,
                predictive_mb=0,
                check_symmetry=False,
                progress=progress,
            )
            for number in range(settings.fits)
        ]
    )


def side_by_side(trees: Sequence[xr.DataTree]) -> xr.DataTree:
    """Make one posterior of several fits, a chain each, with their parameters and the traces of their ELBOs."""
    groups = {
        name: xr.concat([tree[name].to_dataset() for tree in trees], "chain").assign_coords(
            chain=np.arange(len(trees))
        )
        for name in (schema.POSTERIOR, schema.SAMPLE_STATS)
    }
    fits = [tree[schema.VARIATIONAL].to_dataset() for tree in trees]
    iteration = fits[0][schema.ITERATION]  # no fit stops early, so that all have the same
    chains = xr.concat([fit.drop_vars(schema.ITERATION) for fit in fits], "chain")
    groups[schema.VARIATIONAL] = chains.assign(iteration=iteration)
    attrs = dict(trees[0].attrs)
    for name in (schema.WALL_TIME, schema.GRADIENT_EVALUATIONS):
        attrs[name] = sum(tree.attrs[name] for tree in trees)
    attrs[schema.CONVERGED] = min(tree.attrs[schema.CONVERGED] for tree in trees)
    return tree_of(groups, attrs)


def _aligned(draws: xr.DataTree, target: NetworkTarget, settings: Aligning) -> xr.DataTree:
    """Align modulo permutations; positive scalings are no symmetry of the posterior, whose prior breaks them."""
    permutations = blocks_of(target.symmetry, Exchangeable)
    out = align(draws, permutations, **asdict(settings)).posterior
    out.attrs.pop(schema.WALL_TIME)  # that of the draws; the cell has its own
    return out


def _gaussian(aligned: xr.DataTree, target: NetworkTarget, cell: Cell) -> xr.DataTree:
    """Fit a Gaussian to the moments of aligned draws, sample it, and say its ELBO."""
    settings: OneGaussian = cell.settings
    found = fit_gaussian(aligned, settings.covariance)
    tree = found.sample(settings.draws, seed=cell.seed, predictive_mb=0)
    values = log_density(target, tree, engine="numpyro").values - found.log_density(tree)
    tree.attrs[BOUND] = float(values.mean())
    return tree


def _distilled(
    draws: xr.DataTree, aligned: xr.DataTree, target: NetworkTarget, cell: Cell
) -> xr.DataTree:
    """Distil the draws as they came, from the mean of the aligned ones."""
    settings: Distilling = cell.settings
    means = aligned[schema.POSTERIOR].to_dataset().mean(schema.SAMPLE_DIMS)
    start = {str(name): value.values for name, value in means.items()}
    found = distil(draws, target.x, start=start, settings=settings.distillation, seed=cell.seed)
    return found.sample(settings.draws, seed=cell.seed, predictive_mb=0)
