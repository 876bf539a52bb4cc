"""The parts that both Gaussians share: their card's table of parameters, and predictions of their draws."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from onebasin.base.card import number
from onebasin.base.table import Table
from onebasin.posteriors import schema
from onebasin.posteriors.network_groups import network_groups
from onebasin.posteriors.view import View

MOST = 10
"""Parameters, or variables, of a table."""


def parameter_table(mean: Mapping[str, np.ndarray], sd: Mapping[str, np.ndarray]) -> Table:
    """Every parameter where they are few, else the range of each variable."""
    if size_of(mean) <= MOST:
        places = [(name, place) for name in mean for place in np.ndindex(np.shape(mean[name]))]
        rows = tuple(
            (
                f"`{name}[{','.join(map(str, place))}]`" if place else f"`{name}`",
                number(mean[name][place]),
                number(sd[name][place]),
            )
            for name, place in places
        )
        return Table(("", "mean", "sd"), rows, "parameters")
    names = list(mean)[:MOST]
    more = f", {MOST} of {len(mean)} variables" if len(mean) > MOST else ""
    ranges = []
    for name in names:
        shape = f" ({', '.join(map(str, np.shape(mean[name])))})" if np.shape(mean[name]) else ""
        ranges.append((f"`{name}{shape}`", _range(mean[name]), _range(sd[name])))
    return Table(
        ("", "mean", "sd"), tuple(ranges), f"smallest to largest entry of each variable{more}"
    )


def _range(values: np.ndarray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def size_of(values: Mapping[str, np.ndarray]) -> int:
    """Count the parameters of all variables."""
    return sum(int(np.size(array)) for array in values.values())


def of_target(attributes: Mapping[str, object]) -> str:
    """Return " of `NAME`", or nothing where the target has no name."""
    name = attributes.get(schema.TARGET)
    return f" of `{name}`" if name else ""


def prediction_groups(
    source: View, draws: Mapping[str, np.ndarray], *, seed: int, limit_mb: float
) -> dict[str, xr.Dataset]:
    """Predict with draws (chain, draw, ...) of a network's weights: groups to store with them.

    They take at most `limit_mb` megabytes; there is none where the source is of no network or keeps no data, or the
    draws lack a variable.
    """
    model = source.network
    if model is None or source.x is None or source.y is None:
        return {}
    needed = [*model.network.shapes, *(["sigma"] if model.infers_noise else [])]
    if not set(needed) <= set(draws):
        return {}
    groups = network_groups(model, draws, source.x, source.y, seed=seed, limit_mb=limit_mb)
    return {name: group.to_dataset() for name, group in (groups or {}).items()}
