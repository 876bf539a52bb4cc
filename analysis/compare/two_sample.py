"""Tests of whether two samples have one distribution: energy distance and maximum mean discrepancy.

Convention: samples are (draw, param), variables already in the units that count. The energy distance is
the squared one, 2 E|X - Y| - E|X - X'| - E|Y - Y'| (Székely and Rizzo 2013, equation 2.1; SciPy's, in one
dimension, is its root); the discrepancy is squared too (Gretton et al. 2012, equation 3 and lemma 6), with the
kernel exp(-|x - y|^2 / (2 h^2)) and h the median distance between pooled draws. Both are zero only where
the distributions are equal, and are estimated without bias, so that a value below zero means nothing
found. The p-value is by permutation of draws.

Draws of a Markov chain are not exchangeable with one another, and permuting them rejects what is equal. So
`thin` comes first.

Thinning Markov chains until their draws may be taken for independent: every k-th draw, by `stride`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.rhat_ess import bulk_ess

from ..summaries.units import is_constant, power_of_two

MAX_DRAWS = 1000
EXCESS = 0.05
"""Tolerated growth of a two-sample statistic by what is left of autocorrelation, in its standard deviations."""
_ENTRIES = 500


def thin(
    draws: Draws, *, autocorrelated: bool = True, max_draws: int = MAX_DRAWS
) -> Float[np.ndarray, "kept param"]:
    """Take every k-th draw of each chain, so far apart that they may be permuted, each chain's last draw among them.

    All draws are taken, up to `max_draws`, where they are not autocorrelated; comparing takes memory with the square of
    their number.
    """
    least = -(-draws.num_chains * draws.num_draws // max_draws)
    return draws.every(max(stride(draws) if autocorrelated else 1, least))


def stride(draws: Draws) -> int:
    """Return how many draws lie between two that may be taken for independent, from 1 to the length of a chain.

    Each parameter is taken for a first-order autoregression with its bulk ESS, whose correlation r at the stride would
    let the squared distance of means grow by (1 + r) / (1 - r). The stride is the smallest at which the growths of all
    parameters add up to no more than a twentieth of the null distribution's standard deviation, were parameters
    independent. That is about 3.5 times the draws per effective draw for one parameter and more for many, since errors
    of many parameters add up faster than chance does. A negative correlation counts as a positive one of its size. At
    most 500 parameters, evenly spaced, are looked at; those that never vary do not count.
    """
    size = len(draws.names)
    # Of neighbours in a first-order autoregression of each parameter's ESS.
    chosen = np.linspace(0, size - 1, min(size, _ENTRIES)).astype(np.intp)
    ess = [np.empty(0)]
    for part in draws.parts():
        here = chosen[(chosen >= part.start) & (chosen < part.stop)] - part.start
        values = draws.read(part)[..., here]
        values = np.moveaxis(values[..., ~is_constant(values)], -1, 0)
        if len(values):
            ess.append(bulk_ess(values))
    per_effective = draws.num_chains * draws.num_draws / np.concatenate(ess)
    # Chains that jump to and fro have more effective draws than draws, but their spreads do not, nor does
    # every second draw: so the correlation's size counts, whatever its sign.
    correlation = np.abs((per_effective - 1) / (per_effective + 1))
    if not len(correlation):
        return 1
    varying = size / min(size, _ENTRIES) * len(correlation)
    tolerated = EXCESS * np.sqrt(2 * varying) * len(correlation) / varying
    low, high = 1, draws.num_draws
    while low < high:
        middle = (low + high) // 2
        left = correlation**middle
        if (2 * left / (1 - left)).sum() <= tolerated:
            high = middle
        else:
            low = middle + 1
    return low


Sample = Float[np.ndarray, "draw param"]
Other = Float[np.ndarray, "other param"]
Pairs = Float[np.ndarray, "pooled pooled"]

MIN_DRAWS = 10
"""Draws of either sample below which no p-value is given."""
_BATCH = 64


class TwoSample(NamedTuple):
    """The squared distances of two samples, without bias, with p-values; NaN with fewer than 10 draws of either.

    p-values are at least 1 / (permutations + 1).
    """

    energy: float
    energy_p: float
    mmd: float
    mmd_p: float


def two_sample(a: Sample, b: Other, *, permutations: int = 499, seed: int = 0) -> TwoSample:
    """Compare two samples of independent draws (draw, param) by both distances, with p-values by permutation."""
    a, b = _checked(a, b)
    distances, unit = _distances(np.concatenate([a, b]))
    width = float(np.median(distances[np.triu_indices(len(distances), 1)]))
    width = width or 1.0  # where most draws are equal, any width serves
    kernel = np.exp(-0.5 * np.square(distances / width))
    np.fill_diagonal(kernel, 0)
    pairs = np.stack([distances, -kernel])
    labels = np.zeros((1, len(distances)))
    labels[0, : len(a)] = 1
    observed = _statistics(pairs, labels)[:, 0]
    p_values = np.full(2, np.nan)
    if min(len(a), len(b)) >= MIN_DRAWS:
        # The share of relabellings, the one found among them, with a statistic as large.
        rng = np.random.default_rng(seed)
        pooled = pairs.shape[1]
        rounding = 1e-12 * np.abs(pairs).max(axis=(1, 2))
        as_large = np.ones(2)
        for start in range(0, permutations, _BATCH):
            batch = min(_BATCH, permutations - start)
            labels = np.zeros((batch, pooled))
            chosen = rng.permuted(np.tile(np.arange(pooled), (batch, 1)), axis=1)[:, : len(a)]
            np.put_along_axis(labels, chosen, 1.0, axis=1)
            as_large += (_statistics(pairs, labels) >= (observed - rounding)[:, None]).sum(axis=1)
        p_values = as_large / (permutations + 1)
        p_values = np.where(np.isfinite(observed), p_values, np.nan)
    energy, mmd = map(float, observed)
    return TwoSample(unit * energy, float(p_values[0]), mmd, float(p_values[1]))


def energy_distance(a: Sample, b: Other) -> float:
    """Return the squared energy distance of two samples (draw, param).

    It is without bias: a draw's distance from itself is left out of the means.
    """
    a, b = _checked(a, b)
    pairs, unit = _distances(np.concatenate([a, b]))
    within = [pairs[: len(a), : len(a)], pairs[len(a) :, len(a) :]]
    inside = sum(block.sum() / (len(block) * (len(block) - 1)) for block in within)
    return unit * float(2 * pairs[: len(a), len(a) :].mean() - inside)


def _checked(a: Sample, b: Other) -> tuple[Sample, Other]:
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    for name, sample in (("a", a), ("b", b)):
        if len(sample) < 2:
            raise ArgumentError(
                f"`{name}` has {len(sample)} draws; a distribution needs two at least."
            )
    return a, b


def _distances(points: Float[np.ndarray, "pooled param"]) -> tuple[Pairs, float]:
    """Euclidean distances of all pairs, by one matrix product, and the power of two that they are divided by."""
    # About the middle of each variable, and in a unit of their own: no digits are lost where the centre is far from 0,
    # and no square is too large or too small for a double.
    low, high = points.min(axis=0), points.max(axis=0)
    half = high / 2 - low / 2
    unit = float(power_of_two(np.asarray(half.max(initial=0.0))))
    points = (points - (low + half)) / unit
    points -= points.mean(axis=0)
    squares = np.square(points).sum(axis=1)
    out = points @ points.T
    out *= -2
    out += squares[:, None]
    out += squares
    np.maximum(out, 0, out=out)  # rounding, where two draws are equal
    np.sqrt(out, out=out)
    np.fill_diagonal(out, 0)
    return (out + out.T) / 2, unit


def _statistics(
    pairs: Float[np.ndarray, "statistic pooled pooled"], labels: Float[np.ndarray, "batch pooled"]
) -> Float[np.ndarray, "statistic batch"]:
    """Twice the mean between samples less the means within, for rows of labels 1 (first) and 0."""
    first = labels[0].sum()
    second = labels.shape[1] - first
    within_first = ((labels @ pairs) * labels).sum(axis=-1)
    rows = pairs.sum(axis=-1)
    touching = rows @ labels.T
    between = touching - within_first
    within_second = rows.sum(axis=-1, keepdims=True) - touching - between
    inside = within_first / (first * (first - 1)) + within_second / (second * (second - 1))
    return 2 * between / (first * second) - inside
