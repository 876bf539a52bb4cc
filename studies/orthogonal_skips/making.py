"""Making the cells: fits and chains as their methods have it, and equation 6 at several moments of a fit's training."""

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import xarray as xr

from ..lab import Cell, Context, Frame, Outcomes, Row
from ..lab.making import sample
from ..lab.posteriors import to_tree
from .design import GAP, Config, target

ALL = "all"
"""In the place of a layer's name: all layers together."""


def make(config: Config, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Make a cell's posterior, or the frame `gap` of a fit."""
    if cell.method != GAP:
        return sample(cell, context)
    fit = outcomes.by_key(cell.inputs[0])
    return to_tree({GAP: Frame.of(gap_rows(config, cell, fit))})


def gap_rows(config: Config, cell: Cell, fit: xr.DataTree) -> Iterator[Row]:
    """Bound KL[q_0 || q], a row for all layers and a row a layer, at moments spread evenly over the training."""
    from onebasin.inference import mixture_gap

    iteration = fit["variational"].to_dataset()["iteration"].values
    for moment in moments(len(iteration), cell.settings.points):
        found = mixture_gap(
            target(config, cell),
            fit,
            evaluation=moment,
            draws=cell.settings.draws,
            permutations=cell.settings.permutations,
            seed=cell.seed,
        )
        when = {"iteration": iteration[moment], "end": moment == len(iteration) - 1}
        yield {**when, "layer": ALL, **asdict(found.total), "log_order": found.log_order}
        for layer in found.layers.to_dict("records"):
            yield {**when, **layer}


def moments(num: int, points: int) -> list[int]:
    """Choose evaluations, the first and the last among them, spread evenly."""
    return sorted(set(np.linspace(0, num - 1, points).round().astype(int).tolist()))
