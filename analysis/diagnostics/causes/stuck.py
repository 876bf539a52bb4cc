"""Chains that stand still: long runs of equal draws, and variables that hardly vary in one chain.

A Metropolis chain repeats its draws honestly, with runs as long as its share of repeats makes them; so a run is judged
beside that share. Likewise one entry may honestly be narrow in one chain, where labels are permuted, and so the spread
is that of a whole variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

SHARE = 0.1
"""Share of a chain's draws that a run of equal ones has to take."""
LEAST_RUN = 3
"""Equal draws that say nothing by themselves: in short chains a tenth of the draws is less."""
NARROW = 4e-4
"""Variance of a variable in one chain over the median chain's, below which the chain does not explore it."""


@dataclass(frozen=True)
class Run:
    """A run of equal draws of one entry: its chain, its first draw, its length."""

    chain: int
    first: int
    length: int


def longest_run(
    values: Float[np.ndarray, "chain draw param"], free: Bool[np.ndarray, " param"]
) -> Run | None:
    """Find the longest run of equal draws that is too long to be honest; None where there is none.

    Parameters
    ----------
    values
        Draws of entries.
    free
        Which of them vary.
    """
    draws = values.shape[1]
    same = values[:, 1:] == values[:, :-1]
    share = same.mean(axis=1)
    honest = _honest(np.median(share, axis=0), draws)
    chains, entries = np.nonzero((share * (draws - 1) + 1 > honest) & free)
    runs = [(_longest(same[c, :, p]), int(c), int(p)) for c, p in zip(chains, entries, strict=True)]
    long = [(length, chain, first) for (length, first), chain, p in runs if length > honest[p]]
    if not long:
        return None
    length, chain, first = max(long, key=lambda run: run[0])
    return Run(chain, first, length)


def narrow_chains(values: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Name variables (chain, draw, *event) that hardly vary in one chain of three or more, with that chain."""
    found = {}
    for name, drawn in values.items():
        variance = np.array([chain.var(axis=0).sum() for chain in drawn])
        if len(variance) > 2 and variance.min() < NARROW * np.median(variance):
            found[name] = int(variance.argmin())
    return found


def _honest(share: Float[np.ndarray, " param"], draws: int) -> Float[np.ndarray, " param"]:
    """The longest run that a share of repeats explains."""
    with np.errstate(divide="ignore"):
        explained = -3 * np.log(draws) / np.log(np.clip(share, 0, 1 - 1e-9))
    return np.minimum(np.maximum(max(SHARE * draws, LEAST_RUN), explained), 0.99 * draws)


def _longest(same: Bool[np.ndarray, " step"]) -> tuple[int, int]:
    """Length and first draw of the longest run, of which draws equal those before them."""
    ends: Int[np.ndarray, " change"] = np.flatnonzero(np.concatenate([[True], ~same, [True]]))
    lengths = np.diff(ends)
    place = int(lengths.argmax())
    return int(lengths[place]), int(ends[place])
