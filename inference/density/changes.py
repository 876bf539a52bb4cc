"""By how much a log density and what follows from it change when points are moved, and draws that are worth moving.

A symmetry leaves a log density as it is up to rounding, whatever constants a program adds. Rounding is estimated where
it could matter: by the size of the log density, and by what the smallest possible changes of the point do to it. A
change that is within rounding is no change, and where rounding is above `BLIND` the point tells nothing.

Transformed parameters, generated quantities and deterministic sites are computed at points and at the same points
moved. One that a block names has to come out as the block moves it; one that changes and that no block names stays
behind when draws are aligned. Quantities with random numbers of their own differ under another seed, and cannot be
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from onebasin.base.errors import ArgumentError
from onebasin.base.files.pieces import pieces
from onebasin.posteriors import schema
from onebasin.stan.home.errors import StanError

from ..contracts.values import ValueDensity

ROUNDINGS = 16.0
"""How many times the estimate of rounding a change may be before it counts as one."""
BLIND = 0.1
"""Nats of rounding from which on a point tells nothing: a part of a model that is missed changes it by more."""
PERTURBATIONS = 3
"""Smallest changes of a point that are tried, where they are needed."""

Values = Mapping[str, Any]
Arrays = dict[str, np.ndarray]
Measure = Callable[[Values], Float[np.ndarray, " point"] | None]


@dataclass(frozen=True)
class Changes:
    """What moving did, point by point.

    Attributes
    ----------
    size : array (point,)
        Change in nats; infinite where only one of both is finite, NaN where it tells nothing.
    real : array (point,) of bool
        Whether the change is beyond tolerance and rounding.
    telling : array (point,) of bool
        Whether the point tells anything.
    """

    size: Float[np.ndarray, " point"]
    real: Bool[np.ndarray, " point"]
    telling: Bool[np.ndarray, " point"]

    @property
    def largest(self) -> float:
        """The largest change; NaN where no point tells anything."""
        return float(self.size[self.telling].max()) if self.telling.any() else float("nan")


def changes(
    measure: Measure,
    values: Values,
    before: Float[np.ndarray, " point"],
    after: Float[np.ndarray, " point"],
    tolerance: float,
) -> Changes:
    """Hold log densities at points against those at the same points moved.

    Parameters
    ----------
    measure : callable
        The log density, for estimates of rounding.
    values : mapping of str to array (point, ...)
        The points.
    before, after : array (point,)
        Log densities at the points and at the moved ones.
    tolerance : float
        Nats that a change may have in any case.
    """
    eps = _precision(values)
    before, after = (np.asarray(side, dtype=np.float64) for side in (before, after))
    finite = np.isfinite(before) & np.isfinite(after)
    with np.errstate(invalid="ignore"):
        size = np.where(finite, np.abs(after - before), np.inf)
        magnitude = np.maximum(np.abs(before), np.abs(after))
    rounding = np.where(finite, ROUNDINGS * eps * magnitude, 0.0)
    doubtful = finite & (size > np.maximum(tolerance, rounding))
    if doubtful.any():
        rounding = np.maximum(rounding, ROUNDINGS * _noise(measure, values, before, eps))
    # Neither side finite, or nothing to start from: the point tells nothing.
    nothing = np.isnan(before) | (~np.isfinite(before) & ~np.isfinite(after)) | (before == np.inf)
    real = ~nothing & (size > np.maximum(tolerance, rounding))
    telling = real | (~nothing & (rounding <= BLIND))
    return Changes(np.where(telling, size, np.nan), real, telling)


def _noise(
    measure: Measure, values: Values, before: Float[np.ndarray, " point"], eps: float
) -> Float[np.ndarray, " point"]:
    """Largest change of the log density by changes of the points in their last digits."""
    rng = np.random.default_rng(0)
    noise = np.zeros(len(before))
    for _ in range(PERTURBATIONS):
        nudged = {name: _nudge(np.asarray(value), eps, rng) for name, value in values.items()}
        if (there := measure(nudged)) is None:
            break
        with np.errstate(invalid="ignore"):
            change = np.abs(np.asarray(there, dtype=np.float64) - before)
        noise = np.maximum(noise, np.where(np.isfinite(change), change, 0.0))
    return noise


def _nudge(value: np.ndarray, eps: float, rng: np.random.Generator) -> np.ndarray:
    steps = rng.choice([-1.0, 1.0], size=value.shape)
    return (value * (1 + eps * steps)).astype(value.dtype)


def _precision(values: Values) -> float:
    kinds = [np.asarray(value).dtype for value in values.values()]
    return max((float(np.finfo(k).eps) for k in kinds if k.kind == "f"), default=2.2e-16)


AGREEMENT = 1e-6
"""Of a quantity's size: larger differences are none of rounding."""
SEEDS = 5
"""Seeds that are tried before a quantity that differs is taken to be without random numbers."""


@dataclass(frozen=True)
class Derived:
    """Derived quantities at points.

    Attributes
    ----------
    density : ValueDensity
        What computes them.
    points : mapping of str to array (point, ...)
        Where.
    values : mapping of str to array (point, ...)
        What they are there; empty where there are none, or they cannot be computed.
    random : tuple of str
        Those with random numbers of their own.
    seed : int
        Of random numbers.
    """

    density: ValueDensity
    points: Arrays
    values: Arrays
    random: tuple[str, ...]
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
        """Those that do not come out as moved: name and largest difference.

        Parameters
        ----------
        moved : mapping of str to array (point, ...)
            The points, and what the derived quantities ought to be there.
        """
        try:
            there = self.density.derived_at(moved, self.seed) if self.values else {}
        except StanError:
            return
        for name, found in there.items():
            if name not in self.random and not _close(found, moved[name]):
                yield name, float(np.nanmax(np.abs(found - moved[name])))

    def is_random(self, name: str) -> bool:
        """Whether a quantity differs under some other seed."""
        seeds = range(self.seed + 2, self.seed + 2 + SEEDS)
        return any(
            not _same(self.density.derived_at(self.points, seed)[name], self.values[name])
            for seed in seeds
        )


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    size = np.maximum(np.abs(a), np.abs(b))
    finite = size[np.isfinite(size)]
    slack = AGREEMENT * (finite.max() if finite.size else 0.0)
    return bool(np.allclose(a, b, rtol=0.0, atol=slack, equal_nan=True))


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
