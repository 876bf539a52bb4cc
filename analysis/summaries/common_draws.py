"""Draws that recur: in two chains, as copies, overlapping stretches and thinned chains have them; or in any order.

Independent chains of continuous parameters have none in common. Numbers that were rounded, or that a sampler takes
again and again, recur within a chain too; of such chains nothing can be told. Resampled particles recur in any order,
and are worth at most as many draws as there are distinct ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, UInt64

from onebasin.posteriors.draws import RECUR

MANY = 0.1
"""Share of the draws of a chain from which on they are not another chain's by chance."""
RECURS = 0.01
"""Share of draws that recur within a chain, from which on common draws say nothing."""

LEVELS = 5, 10
"""Levels that rounded numbers have at least, and how many times as many lie in their range at most."""

Keys = UInt64[np.ndarray, " _"]  # chains keep unequal numbers


def draw_keys(drawn: Iterable[Float[np.ndarray, "chain draw *_"]]) -> Sequence[Keys]:
    """Give each chain's draws as one number each, without immediate repeats; empty where nothing varies."""
    flat = [np.asarray(v, np.float64).reshape(*v.shape[:2], -1) for v in drawn if v.size]
    if not any(np.ptp(v) > 0 for v in flat):
        return []
    rng = np.random.default_rng(0)
    keys = np.zeros(flat[0].shape[:2], np.uint64)
    for v in flat:
        odd = rng.integers(2**63, size=v.shape[2], dtype=np.uint64) * 2 + 1
        keys += (np.ascontiguousarray(v).view(np.uint64) * odd).sum(axis=2, dtype=np.uint64)
    return [chain[np.append(True, chain[1:] != chain[:-1])] for chain in keys]


def overlapping(keys: Sequence[Keys]) -> tuple[int, int, int] | None:
    """Find two chains with many draws in common, and the number of these; None where there are none."""
    if not keys:
        return None
    drawn, chains = np.unique(np.concatenate([np.unique(own) for own in keys]), return_counts=True)
    twice = drawn[chains > 1]
    some = [k for k, own in enumerate(keys) if len(twice) and np.isin(own, twice).any()]
    pairs = ((a, b, in_common(keys[a], keys[b])) for a, b in combinations(some, 2))
    return next((found for found in pairs if found[2]), None)


def in_common(one: Keys, other: Keys) -> int:
    """Count the draws of one chain that are another's too; 0 where these are few, or say nothing."""
    if np.array_equal(one, other):
        return len(one)
    recurring = max(1 - len(np.unique(each)) / len(each) for each in (one, other))
    common = len(np.intersect1d(one, other))
    many = common >= max(2, MANY * min(len(one), len(other)))
    return common if many and recurring < RECURS else 0


@dataclass(frozen=True)
class Recurring:
    """Draws that recur in any order: the number of distinct ones, and of independent ones that they are worth."""

    distinct: int
    worth: float


def recurring(drawn: Sequence[Float[np.ndarray, "chain draw *_"]]) -> Recurring | None:
    """Count draws that recur, but for the repeats of a chain that stays where it is; None where few do.

    Numbers that are whole, or were rounded, recur by chance. Draws that came k times each are worth as many as weights
    in proportion to k are (Kish).
    """
    keys = draw_keys(drawn)
    columns = (column for values in drawn for column in values.reshape(-1, values[0, 0].size).T)
    within = any(len(np.unique(each)) < RECUR * len(each) for each in keys)
    if not within or all(map(_is_rounded, columns)):
        return None
    counts = np.unique(np.concatenate(keys), return_counts=True)[1]
    return Recurring(len(counts), float(counts.sum() ** 2 / (counts**2).sum()))


def _is_rounded(column: Float[np.ndarray, " draw"]) -> bool:
    """Tell whether numbers are whole, or fill evenly spaced levels."""
    levels = np.unique(column)
    if (levels == np.rint(levels)).all():
        return True
    steps = np.diff(levels) / np.diff(levels).min()
    least, most = LEVELS
    filled = least <= len(levels) and steps.sum() <= most * len(levels)
    return bool(filled and (np.abs(steps - np.rint(steps)) < 0.01).all())
