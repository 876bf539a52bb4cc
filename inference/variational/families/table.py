"""Families by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onebasin.base.errors import ArgumentError

from ..layout import Layout
from .base import Family
from .full_rank import FullRank
from .low_rank import LowRank
from .mean_field import MeanField
from .per_component import PerComponent

GAUSSIANS: Mapping[str, Callable[[int], Family]] = {"meanfield": MeanField, "fullrank": FullRank}
"""Of ADVI, from the number of coordinates."""


def family_of(name: str, layout: Layout, rank: int) -> Family:
    """The family of this name on a layout.

    Raises
    ------
    ValueError
        If "block" is asked for where parts share coordinates.
    """
    if name == "meanfield":
        return MeanField(layout.density.size)
    if name == "lowrank":
        return LowRank(layout.density.size, rank)
    if layout.overlaps or not layout.has_parts:
        raise ArgumentError(
            "`family` is 'block', but a coordinate of this target belongs to more than one part (a weight between two "
            "hidden layers, an entry of a transition matrix), so that parts have no covariances of their own. Use "
            "family='meanfield'."
        )
    indices = tuple(layout.columns(block).index for block in layout.blocks)
    return PerComponent(indices, layout.rest())
