"""Test quantities: numbers of a point of the parameters and of the data, whose ranks are looked at.

Any function of both will do, and those of the data see more than those of the parameters alone: a posterior that is
the prior, whatever the data, has uniform ranks of every parameter, but not of the log likelihood (Modrák et al. 2023).
Where the posterior has a symmetry, chains may stay in one of several equal modes, in which parameters of no labelling
have no meaning. What is looked at is what no element of the group changes, parameters that it does not move, and the
others in a labelling of their own (`models.symmetry.closest`).

The ECDF of numbers that should be uniform: simultaneous bands, p-values and power, all of them exact.

Säilynoja, Bürkner and Vehtari 2022: at each of some points the count of numbers below it is binomial; a band has the
same tail probability gamma / 2 at every point on either side, and gamma is chosen so that the whole ECDF stays inside
with the probability asked for. Counts in intervals are multinomial, which is independent Poisson counts given their
sum: so the probability of staying inside is a chain of convolutions. ArviZ simulates gamma instead; its thousand
simulations know nothing of the levels far below 1 % that many quantities need, and give no p-value.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import bdtr, gammaln, ndtr, ndtri

from onebasin.base.errors import ArgumentError, code_of_user
from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.models.symmetry.closest import canonical
from onebasin.posteriors.rhat_ess import diagnostics

from .family import Data, Quantity, Values

MOST_POINTS = 200
"""Points at which the ECDF is looked at; as many as there are numbers, where those are fewer."""
SEEN = 0.9  # Probability with which an error is seen that is said to be seen.

Cdf = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Band:
    """The band that holds an ECDF of uniform numbers.

    Attributes
    ----------
    points : array (point,)
        Between 0 and 1.
    lower, upper : array (point,)
        Smallest and largest share of the numbers that are below each.
    """

    points: Float[np.ndarray, " point"]
    lower: Float[np.ndarray, " point"]
    upper: Float[np.ndarray, " point"]


def counts_below(numbers: Float[np.ndarray, " number"]) -> Int[np.ndarray, " point"]:
    """Count the numbers at or below each of the points of their ECDF."""
    return np.searchsorted(np.sort(numbers), _points(len(numbers)), side="right")


def band(count: int, alpha: float) -> Band:
    """The band that the ECDF of `count` uniform numbers leaves with probability `alpha` at the most."""
    lower, upper = _bounds(count, _gamma(count, alpha))
    return Band(_points(count), lower / count, upper / count)


def p_value(numbers: Float[np.ndarray, " number"]) -> float:
    """Probability that uniform numbers have an ECDF somewhere as far out as that of these."""
    count = len(numbers)
    below = counts_below(numbers)
    at_most, at_least = _tails(count)
    rows = np.arange(len(below))
    gamma = 2 * min(at_most[rows, below].min(), at_least[rows, below].min())
    return _leaves(count, gamma)


def power(count: int, alpha: float, cdf: Cdf) -> float:
    """Probability that numbers with this distribution leave the band of uniform ones."""
    return _leaves(count, _gamma(count, alpha), cdf)


@lru_cache(maxsize=256)
def seen_ratio(count: int, alpha: float) -> float:
    """The smallest factor, above 1, by which an sd must be wrong, either way, to be seen 9 times in 10."""

    def wrong_by(factor: float) -> float:
        # The distribution of Phi(z), z ~ N(0, f^2): truths lie f posterior sds around the mean.
        inverse = 1 / factor
        wide = power(count, alpha, lambda u: ndtr(ndtri(u) / factor))
        return min(wide, power(count, alpha, lambda u: ndtr(ndtri(u) / inverse)))

    return _smallest(wrong_by, 1.0, 30.0)


@lru_cache(maxsize=256)
def seen_shift(count: int, alpha: float) -> float:
    """By how many posterior sds a mean must be wrong to be seen 9 times in 10."""
    return _smallest(lambda shift: power(count, alpha, lambda u: ndtr(ndtri(u) - shift)), 0.0, 10.0)


def _smallest(seen: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(14):
        middle = 0.5 * (low + high) if low == 0 else float(np.sqrt(low * high))
        low, high = (low, middle) if seen(middle) >= SEEN else (middle, high)
    return high


def _points(count: int) -> Float[np.ndarray, " point"]:
    number = min(count, MOST_POINTS)
    return np.arange(1, number) / number


@lru_cache(maxsize=64)
def _tails(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (point, count) of at most, and of at least, so many below each point."""
    below = np.arange(count + 1)
    at_most = bdtr(below[None].astype(float), count, _points(count)[:, None])
    at_least = np.concatenate([np.ones((len(at_most), 1)), 1 - at_most[:, :-1]], axis=1)
    return at_most, at_least


def _bounds(count: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest count inside, at each point: both tails are above gamma / 2."""
    at_most, at_least = _tails(count)
    return np.argmax(at_most > gamma / 2, axis=1), (at_least > gamma / 2).sum(axis=1) - 1


@lru_cache(maxsize=256)
def _gamma(count: int, alpha: float) -> float:
    """The largest gamma whose band is left with probability `alpha` at the most."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _leaves(count, middle) <= alpha else (low, middle)
    return low


def _leaves(count: int, gamma: float, cdf: Cdf | None = None) -> float:
    """Probability that the ECDF of independent numbers leaves the band of a gamma somewhere."""
    lower, upper = _bounds(count, gamma)
    if np.any(lower > upper):
        return 1.0
    points = _points(count)
    reached = np.concatenate([points if cdf is None else cdf(points), [1.0]])
    expected = np.maximum(count * np.diff(reached, prepend=0.0), 1e-300)
    steps = np.arange(int(np.max(np.append(upper, count) - np.insert(lower, 0, 0))) + 1)
    chances = np.exp(steps * np.log(expected)[:, None] - expected[:, None] - gammaln(steps + 1))
    chance, first = np.ones(1), 0  # of each count from `first` on, at the point before
    for of_steps, low, high in zip(chances, [*lower, count], [*upper, count], strict=True):
        grown = np.convolve(chance, of_steps[: high - first + 1])
        chance, first = grown[low - first : high - first + 1], low
    log_all = count * np.log(count) - count - gammaln(count + 1)
    return float(np.clip(1 - chance[0] / np.exp(log_all), 0.0, 1.0))


MOST_ENTRIES = 6  # Entries of one variable that are looked at, spread evenly over it.
LOG_LIKELIHOOD, LP = "log likelihood", "lp"
"""Log density of the data given the parameters, and of both, on the constrained scale."""

SLACK = 0.2
"""By what draws taken may be fewer than the effective ones, in draws for each: ESS is estimated."""

Numbers = dict[str, np.ndarray]  # Test quantity to numbers (point,).
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
