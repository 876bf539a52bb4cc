"""Variables that decide whether a posterior may be used, their draws, and draws that recur.

Parameters decide. Integers do not (an allocation changes values, not places), nor do whole numbers that recur as
integers do, and generated quantities. Where there are no parameters at all, everything decides.

Draws recur in two chains, as copies, overlapping stretches and thinned chains have them; or in any order.
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

from onebasin.posteriors.draws import RECUR, Columns, checked, distinct_and_moves, unwrapped
from onebasin.posteriors.view import View

from .summary import rhats

WHOLE = 2**25
"""Bytes of draws that are all looked at together."""
BUDGET = 2**24
"""Bytes of more draws that are: every few of them, `KEPT` a chain at least."""
KEPT = 500
ENTRIES, FEW = 32, 10
"""Entries of a variable that are looked at for integers, and numbers that may be integers though they do not recur."""


def deciding(
    view: View, chosen: Sequence[str] | None = None
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the variables that decide, in the posterior's order, and by reason those that do not.

    Variables that were asked for (`chosen`) decide whatever their kind. Reasons are ``integer``, ``transformed`` and
    ``generated``.
    """
    names = tuple(view.variables if chosen is None else chosen)
    kinds = view.kinds.of
    whole = tuple(name for name in names if _is_whole(view, name))
    real = tuple(name for name in names if name not in whole)
    decide = tuple(name for name in real if kinds[name] == "parameter" or chosen is not None)
    decide = decide or real or names
    out = {
        "integer": tuple(name for name in whole if name not in decide),
        **{
            kind: tuple(n for n in real if kinds[n] == kind and n not in decide)
            for kind in ("transformed", "generated")
        },
    }
    return decide, out


def looked_at(
    view: View, names: Sequence[str], step: int = 0
) -> dict[str, Float[np.ndarray, "chain draw *event"]]:
    """Return draws of variables in double precision, every few of them where they would take more than `WHOLE`.

    Angles that lie across the cut of their circle are within half a circle of their means.
    """
    step = step or every_few(view, names)
    thinned = {
        name: checked(view.arrays[name], view.argument).isel(draw=slice(None, None, step))
        for name in names
    }
    return {n: unwrapped(np.asarray(v.values, dtype=np.float64)) for n, v in thinned.items()}


def rhat_of_entries(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, " param"]:
    """R-hat of entries; of a single chain that of its halves; NaN where it is not defined."""
    if len(values) > 1:
        return rhats(values)
    half = values.shape[1] // 2
    return rhats(np.concatenate([values[:, :half], values[:, half : 2 * half]]))


def _is_whole(view: View, name: str) -> bool:
    """Tell whether a variable's numbers are integers, by their type or by themselves: whole ones that recur.

    Numbers so large that their precision has no fractions are whole whatever they are, those in single precision also
    after they were widened; and rounded ones are multiples of ten.
    """
    variable = view.arrays[name]
    if variable.dtype.kind != "f":
        return variable.dtype.kind in "biu"
    some = variable.isel(draw=slice(0, 50), missing_dims="ignore").values
    some = some[np.isfinite(some)]
    if not some.size or (some != np.rint(some)).any():
        return False
    with np.errstate(over="ignore"):
        single = bool((some.astype(np.float32) == some).all())
    if np.spacing((np.float32 if single else np.float64)(np.abs(some).max())) >= 1:
        return False
    entries = Columns([checked(variable, view.argument)])
    few = np.nan_to_num(entries.read(0, min(ENTRIES, entries.shape[2])), posinf=0.0, neginf=0.0)
    distinct, moves = distinct_and_moves(few)
    steps = np.diff(np.unique(few)).astype(int)
    rounded = len(steps) >= FEW and np.gcd.reduce(steps) >= 10
    recur = distinct.sum() < RECUR * moves.sum() or distinct.max() <= FEW
    return bool(len(steps) and recur and not rounded)


def every_few(view: View, names: Sequence[str]) -> int:
    """Every how many-th draw of variables is looked at."""
    size = sum(8 * view.arrays[name].size for name in names)
    return 1 if size <= WHOLE else min(-(-size // BUDGET), max(1, view.num_draws // KEPT))


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
