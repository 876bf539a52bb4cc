"""Quantities that follow from parameters when points are moved, and draws that are worth moving.

Transformed parameters, generated quantities and deterministic sites are computed at points and at the same points
moved. One that a block names has to come out as the block moves it; one that changes and that no block names stays
behind when draws are aligned. Quantities with random numbers of their own differ under another seed, and cannot be
compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onebasin.base.errors import ArgumentError, StanError
from onebasin.base.files.netcdf import pieces
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from ..contracts.values import ValueDensity

Arrays = dict[str, np.ndarray]

AGREEMENT = 1e-6  # The share of a quantity's size above which a difference is not rounding.
SEEDS = 5
"""Seeds that are tried before a quantity that differs is taken to be without random numbers."""


@dataclass(frozen=True)
class Derived:
    """Derived quantities at points, arrays (point, ...) by name."""

    density: ValueDensity
    points: Arrays
    values: Arrays  # empty where there are none, or they cannot be computed
    random: tuple[str, ...]  # those with random numbers of their own
    seed: int

    @classmethod
    def at(cls, density: ValueDensity, points: Arrays, seed: int) -> Derived:
        """Compute them; none where the engine cannot."""
        try:
            values = density.derived_at(points, seed) if density.derived else {}
            again = density.derived_at(points, seed + 1) if values else {}
        except StanError:
            values, again = {}, {}
        random = tuple(n for n in values if not _same(values[n], again[n]))
        return cls(density, points, values, random, seed)

    @property
    def missing(self) -> tuple[str, ...]:
        """Those that could not be computed."""
        return tuple(name for name in self.density.derived if name not in self.values)

    def misfits(self, moved: Arrays) -> Iterator[tuple[str, float]]:
        """Those that do not come out as moved, with the points, in `moved`: name and largest difference."""
        try:
            there = self.density.derived_at(moved, self.seed) if self.values else {}
        except StanError:
            return
        for name, found in there.items():
            if name not in self.random and not is_close(found, moved[name]):
                yield name, float(np.nanmax(np.abs(found - moved[name])))

    def is_random(self, name: str) -> bool:
        """Tell whether a quantity differs under some other seed."""
        seeds = range(self.seed + 2, self.seed + 2 + SEEDS)
        return any(
            not _same(self.density.derived_at(self.points, seed)[name], self.values[name])
            for seed in seeds
        )


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def is_close(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether values of a derived quantity are the same up to rounding."""
    size = np.maximum(np.abs(a), np.abs(b))
    finite = size[np.isfinite(size)]
    slack = AGREEMENT * (finite.max() if finite.size else 0.0)
    return bool(np.allclose(a, b, rtol=0.0, atol=slack, equal_nan=True))


MOST_EXTREMES = 12  # Draws with a largest or smallest value that are added at most.


def spread_draws(
    tree: Posterior, names: Sequence[str], count: int, moved: Iterable[str]
) -> dict[str, np.ndarray]:
    """Choose draws evenly over chains and draws: name to array (point, ...).

    The largest and smallest values of the variables in `moved` are among them.
    """
    held = as_view(tree, "draws").posterior
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
            # The smallest and the largest value of every draw, of which some are read at a time.
            reach = [
                (flat.min(axis=1), flat.max(axis=1))
                for chain in arrays[name]
                for flat in (rows.values.reshape(len(rows), -1) for rows in pieces(chain))
            ]
            low, high = (np.concatenate(each) for each in zip(*reach, strict=True))
            chosen += [int(high.argmax()), int(low.argmin())]
    places = [divmod(row, draws) for row in dict.fromkeys(chosen)]
    return {
        name: np.stack([array[place].values for place in places]) for name, array in arrays.items()
    }
