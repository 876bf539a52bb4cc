"""Test quantities: numbers of a point of the parameters and of the data, whose ranks are looked at.

Any function of both will do, and those of the data see more than those of the parameters alone: a posterior that is
the prior, whatever the data, has uniform ranks of every parameter, but not of the log likelihood (Modrák et al. 2023).
Where the posterior has a symmetry, chains may stay in one of several equal modes, in which parameters of no labelling
have no meaning. What is looked at is what no element of the group changes, parameters that it does not move, and the
others in a labelling of their own (`models.symmetry.canonical`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError, code_of_user
from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.models.symmetry.canonical import canonical
from onebasin.posteriors.rhat_ess import diagnostics

from .family import Data, Quantity, Values

MOST_ENTRIES = 6
"""Entries of one variable that are looked at, spread evenly over it."""
LOG_LIKELIHOOD, LP = "log likelihood", "lp"
"""Log density of the data given the parameters, and of both, on the constrained scale."""

SLACK = 0.2
"""By what draws taken may be fewer than the effective ones, in draws for each: ESS is estimated."""

Numbers = dict[str, np.ndarray]
"""Test quantity to numbers (point,)."""
LogDensities = Mapping[str, Float[np.ndarray, " point"]]


@dataclass(frozen=True)
class Looking:
    """The quantities that are ranked: those of the family, and what the posterior's symmetry leaves."""

    symmetry: Symmetry
    quantities: Mapping[str, Quantity]

    def at(self, values: Values, data: Data, densities: LogDensities) -> Numbers:
        """All test quantities at points (point, ...) of the variables, which are conditioned on the data."""
        points = len(next(iter(values.values())))
        out = {name: np.asarray(found) for name, found in densities.items()}
        for name, quantity in self.quantities.items():
            with code_of_user(f"`quantities` has {name!r}, which"):
                given = quantity(values, data)
            out |= _named(name, given, points)
        moved = {n for block in equal_modes(self.symmetry) for n in block.variables}
        labelled = canonical(self.symmetry, values)
        for name in values:
            word = f"{name}, in order" if name in moved else name
            out |= _named(word, labelled[name], points)
        return out


def _named(name: str, found: Any, points: int) -> Numbers:
    """Numbers of each point by name: one, or some entries of several."""
    if isinstance(found, Mapping):
        return {
            key: numbers
            for inner, part in found.items()
            for key, numbers in _named(f"{inner}, {name}", part, points).items()
        }
    numbers = np.asarray(found, dtype=np.float64)
    if numbers.shape[:1] != (points,):
        raise ArgumentError(
            f"`quantities` has {name!r}, which gives numbers of shape {numbers.shape} at {points} points; it must give "
            "one or several for every point, along the first axis."
        )
    if numbers.ndim == 1:
        return {name: numbers}
    shape = numbers.shape[1:]
    flat = numbers.reshape(points, -1)
    places = np.unique(np.linspace(0, flat.shape[1] - 1, MOST_ENTRIES).astype(int))
    variable, comma, how = name.partition(",")
    return {
        f"{variable}[{','.join(map(str, np.unravel_index(place, shape)))}]{comma}{how}": flat[
            :, place
        ]
        for place in places
    }


class Ranked(NamedTuple):
    """The place of a truth among draws.

    `share`, between 0 and 1, is its rank among draws that are next to independent, plus a uniform number, over their
    number and one: uniform if the draws are of the posterior.
    """

    share: float
    z: float  # distance from the draws' mean in their standard deviations
    ess: float
    rhat: float
    kept: int  # draws that it was ranked among


def rank(
    draws: Float[np.ndarray, "chain draw"],
    truth: float,
    rng: np.random.Generator,
    *,
    independent: bool,
) -> Ranked:
    """Rank a truth among draws (chain, draw), of which so many are left out that the others are next to independent.

    Ties, as those of discrete quantities, are broken at random, by `rng`. The same rule holds whatever the truth.
    Draws of an approximation are `independent`.
    """
    ess, rhat = float(draws.size), 1.0
    if not np.isfinite(draws).all() and not independent:
        ess, rhat = np.nan, np.nan
    elif not independent and np.ptp(draws) != 0:
        found = diagnostics(draws[None])
        ess, rhat = float(min(found.ess_bulk[0], found.ess_tail[0])), float(found.rhat[0])
    every = max(1, math.ceil(draws.size / ess - SLACK)) if ess > 0 else draws.shape[1]
    taken = draws[:, ::every].ravel()
    below, ties = np.sum(taken < truth), np.sum(taken == truth)
    share = (below + rng.uniform() * (ties + 1)) / (len(taken) + 1)
    spread = draws.std(ddof=1)
    z = (truth - draws.mean()) / spread if spread > 0 else np.nan
    # The mean and the sd of draws have errors of their own: of 1 / n and 2 / n in the square of z.
    shrunk = np.sqrt(1 + 3 / max(ess, 3.0)) if np.isfinite(ess) else 1.0
    return Ranked(float(share), float(z / shrunk), ess, rhat, len(taken))
