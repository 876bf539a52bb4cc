"""The ECDF of numbers that should be uniform: simultaneous bands, p-values and power, all of them exact.

Säilynoja, Bürkner and Vehtari 2022: at each of some points the count of numbers below it is binomial; a band has the
same tail probability gamma / 2 at every point on either side, and gamma is chosen so that the whole ECDF stays inside
with the probability asked for. Counts in intervals are multinomial, which is independent Poisson counts given their
sum: so the probability of staying inside is a chain of convolutions. ArviZ simulates gamma instead; its thousand
simulations know nothing of the levels far below 1 % that many quantities need, and give no p-value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy.special import bdtr, gammaln, ndtr, ndtri

MOST_POINTS = 200
"""Points at which the ECDF is looked at; as many as there are numbers, where those are fewer."""
SEEN = 0.9
"""Probability with which an error is seen that is said to be seen."""

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
