"""Thinning Markov chains until their draws may be taken for independent: every k-th draw, by `stride`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onebasin.posteriors.chains import bulk_ess
from onebasin.posteriors.draws import Draws

from ..summaries.units import is_constant

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
