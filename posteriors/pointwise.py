"""Groups that hold a number per observation and draw: log likelihoods and predictions.

These have as many numbers as draws and observations together, so that a limit holds them to some megabytes: above it
every second, third, ... draw is kept, the same ones in all groups, and where too few would be left, none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_not_negative
from onebasin.base.run_log import notice

from .schema import CREATED_AT, EVERY

if TYPE_CHECKING:
    pass

LIMIT_MB = 256.0
"""Megabytes that the groups may take together, if nothing else is asked for."""
FEWEST = 100
"""Draws of which something can still be said; groups of fewer are left out."""


type Values = np.ndarray | xr.DataArray
"""Draws (chain, draw, ...) in memory; or in a file, where they stay until they are asked for."""


@dataclass(frozen=True)
class DrawGroup:
    """A group of a posterior: its draws, or what is a function of them."""

    values: Mapping[str, Values]
    """Its variables; a `DataArray` may still be in its file, and stays there."""
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the axes after chain and draw, where they have some."""
    every: int = 1  # Every how many-th draw is kept.
    filed: xr.DataTree | None = None  # The file that holds them, if they are on disk.
    attrs: Mapping[str, Any] = field(default_factory=dict)  # Attributes of the group.

    def to_dataset(self, coords: Mapping[str, Any] | None = None) -> xr.Dataset:
        """Give the group; draws keep the numbers that they have in the posterior."""
        from arviz_base import dict_to_dataset

        dims: Any = {name: list(axes) for name, axes in self.dims.items() if name in self.values}
        # Of what is in files, arrays of the same shapes that take no memory; then the values, with their axes' names.
        filed = {n: v for n, v in self.values.items() if isinstance(v, xr.DataArray)}
        empty = {n: np.broadcast_to(np.zeros((), v.dtype), v.shape) for n, v in filed.items()}
        dataset = dict_to_dataset({**self.values, **empty}, dims=dims)
        for name, values in filed.items():
            like = dataset[name]
            axes = dict(zip(values.dims, like.dims, strict=True))
            bare = values.drop_vars(list(values.coords)).rename(axes)
            dataset = dataset.assign({name: bare.assign_attrs(like.attrs)})
        dataset = labelled(dataset, coords or {})
        dataset.attrs.pop(CREATED_AT, None)  # equal draws give equal groups; the root says when
        dataset.attrs |= dict(self.attrs)
        if self.every > 1:
            dataset = dataset.assign_coords(draw=dataset["draw"] * self.every)
            dataset.attrs[EVERY] = self.every
        return dataset


def labelled(dataset: xr.Dataset, coords: Mapping[str, Any]) -> xr.Dataset:
    """Give the axes of a dataset their labels.

    Labels of another number than the axis has places are left out, as no draws are lost over them; a notice says so.
    """
    fitting = {}
    for axis, labels in coords.items():
        if axis in dataset.sizes and len(labels) != (size := dataset.sizes[axis]):
            notice(
                f"`coords` has {len(labels)} labels for {axis}, which has {size} places: left out"
            )
        elif axis in dataset.sizes:
            fitting[axis] = np.asarray(labels)
    return dataset.assign_coords(fitting)


def check_limit(limit_mb: Any) -> float:
    """Return megabytes as a number, which is finite and 0 or more."""
    check_not_negative("predictive_mb", limit_mb)
    return float(limit_mb)


def every_which(chains: int, draws: int, bytes_a_draw: int, limit_mb: float) -> int | None:
    """Every how many-th draw of each chain stays within a limit; None where too few would be left."""
    if not limit_mb:
        return None
    every = max(1, math.ceil(chains * draws * bytes_a_draw / (limit_mb * 1e6)))
    if every > 1 and chains * math.ceil(draws / every) < FEWEST:
        return None
    return every


def why_left_out(bytes_a_draw: int, limit_mb: float) -> str:
    """Say why groups are left out that `every_which` has no draws for."""
    if not limit_mb:
        return "predictive_mb=0 leaves it out"
    return f"{FEWEST} draws of {bytes_a_draw / 1e6:.3g} MB are more than predictive_mb={limit_mb:g} megabytes"
