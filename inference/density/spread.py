"""Draws of a posterior that are spread over it: over chains and draws, and out to where it reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.base.files.pieces import pieces
from onebasin.posteriors import schema

MOST_EXTREMES = 12
"""Draws with a largest or smallest value that are added at most."""


def spread_draws(
    tree: xr.DataTree, names: Sequence[str], count: int, moved: Iterable[str]
) -> dict[str, np.ndarray]:
    """Choose draws: name to array (point, ...).

    Parameters
    ----------
    tree : DataTree
        The posterior.
    names : sequence of str
        The variables that are returned.
    count : int
        Draws evenly over chains and draws.
    moved : iterable of str
        Variables whose largest and smallest values the chosen draws hold too.

    Raises
    ------
    ValueError
        If a variable is not there.
    """
    held = tree[schema.POSTERIOR].to_dataset()
    absent = [name for name in names if name not in held]
    if absent:
        raise ArgumentError(
            f"`draws` lack {', '.join(absent)}, which the target's density is of; they hold "
            f"{', '.join(map(str, held.data_vars))}."
        )
    arrays = {name: held[name].transpose(*schema.SAMPLE_DIMS, ...) for name in names}
    chains, draws = next(iter(arrays.values())).shape[:2]
    total = chains * draws
    chosen = np.linspace(0, total - 1, min(count, total)).round().astype(int).tolist()
    for name in dict.fromkeys(moved):
        if name in arrays and arrays[name].size and len(chosen) < count + MOST_EXTREMES:
            low, high = _reach(arrays[name])
            chosen += [int(high.argmax()), int(low.argmin())]
    places = [divmod(row, draws) for row in dict.fromkeys(chosen)]
    return {
        name: np.stack([array[place].values for place in places]) for name, array in arrays.items()
    }


def _reach(variable: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value of every draw, chains one after the other; some draws are read at a time."""
    reach = [
        (flat.min(axis=1), flat.max(axis=1))
        for chain in variable
        for flat in (rows.values.reshape(len(rows), -1) for rows in pieces(chain))
    ]
    low, high = zip(*reach, strict=True)
    return np.concatenate(low), np.concatenate(high)
