"""Weights of modes from their log evidences, with intervals, and whether they are known well enough to be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit, logsumexp

from .bridge import Estimate

MOST_ERROR = 0.5
"""Nats of a weight's log odds up to which it counts as known."""
NEGLIGIBLE = 0.01
"""A weight that lies below, or above one less it, with its whole interval, need not be known better."""
_WITHIN = 1.959963984540054
"""Standard errors to either side of a 95 % interval."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Shares of modes in the posterior.

    Attributes
    ----------
    log : array (mode,)
        Logs of the shares.
    error : array (mode,)
        Standard errors of their log odds, in nats.
    low, high : array (mode,)
        Ends of their 95 % intervals.
    known : bool
        Whether every share that may matter has an error of at most half a nat.
    """

    log: Float[np.ndarray, " mode"]
    error: Float[np.ndarray, " mode"]
    low: Float[np.ndarray, " mode"]
    high: Float[np.ndarray, " mode"]
    known: bool


def weigh(estimates: Sequence[Estimate]) -> Weights:
    r"""Give modes their shares.

    Log evidences $z_k$ of independent chains have independent errors $e_k$. The log odds of share $w_k$ have the
    variance $e_k^2 + \sum_{j \ne k} (w_j / (1 - w_k))^2 e_j^2$, to first order; their interval is one of shares.
    """
    values = np.array([estimate.value for estimate in estimates])
    if len(values) == 1:
        one = np.ones(1)
        return Weights(np.zeros(1), np.zeros(1), one, one, math.isfinite(values[0]))
    errors = np.array([estimate.error for estimate in estimates])
    usable = np.where(np.isfinite(values), values, -np.inf)
    if not np.isfinite(usable).any():
        usable = np.zeros(len(values))
    log = usable - logsumexp(usable)
    odds, error = np.empty(len(log)), np.empty(len(log))
    for k in range(len(log)):
        others = np.delete(usable, k)
        rest = float(logsumexp(others))
        shares = np.exp(others - rest) if np.isfinite(rest) else np.zeros(len(others))
        odds[k] = usable[k] - rest
        terms = shares[shares > 0] * np.delete(errors, k)[shares > 0]
        error[k] = math.sqrt(errors[k] ** 2 + float((terms**2).sum()))
    with np.errstate(invalid="ignore"):
        low, high = (
            np.nan_to_num(expit(odds + s * _WITHIN * error), nan=e)
            for s, e in ((-1, 0.0), (1, 1.0))
        )
    settled = (
        (error <= MOST_ERROR)
        | (high < NEGLIGIBLE)
        | (_below_one(odds - _WITHIN * error) < NEGLIGIBLE)
    )
    return Weights(log, error, low, high, bool(settled.all() and np.isfinite(values).all()))


def _below_one(odds: Float[np.ndarray, " mode"]) -> Float[np.ndarray, " mode"]:
    """One less the share of log odds."""
    return np.exp(log_expit(-odds))


def shares_of_draws(
    weights: Float[np.ndarray, " mode"], draws: int, rng: np.random.Generator
) -> list[int]:
    """Of each of a chain's draws, in a random order, which mode it is of: every mode as often as its weight says.

    Systematic: a mode's number of draws is its expectation, rounded up or down.
    """
    ends = np.cumsum(weights / weights.sum())
    places = (np.arange(draws) + rng.uniform()) / draws
    modes = np.minimum(np.searchsorted(ends, places, side="right"), len(weights) - 1)
    return [int(mode) for mode in rng.permutation(modes)]
