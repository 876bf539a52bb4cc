"""Which variables of a posterior decide whether it may be used, and the draws of theirs that are looked at.

Parameters decide. Integers do not (an allocation changes values, not places), nor do whole numbers that recur as
integers do, and generated quantities. Where there are no parameters at all, everything decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

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
