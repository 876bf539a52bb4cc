"""Draws of a posterior that are spread over it: over chains and draws, and out to where it reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from onebasin.models import schema

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
        raise ValueError(
            f"`draws` lack {', '.join(absent)}, which the target's density is of; they hold "
            f"{', '.join(map(str, held.data_vars))}."
        )
    arrays = {name: held[name].transpose(*schema.SAMPLE_DIMS, ...).values for name in names}
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in arrays.items()}
    total = len(next(iter(flat.values())))
    chosen = np.linspace(0, total - 1, min(count, total)).round().astype(int).tolist()
    for name in dict.fromkeys(moved):
        if name in flat and flat[name].size and len(chosen) < count + MOST_EXTREMES:
            by_draw = flat[name].reshape(total, -1)
            chosen += [int(by_draw.max(axis=1).argmax()), int(by_draw.min(axis=1).argmin())]
    rows = list(dict.fromkeys(chosen))
    return {name: array[rows] for name, array in flat.items()}
