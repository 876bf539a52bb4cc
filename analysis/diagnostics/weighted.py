"""Verdict on draws with importance weights: of the whole, and of each mean and each standard deviation.

Weights whose tail is too heavy rest on few draws, however many there are. That is asked of the weights and of every
quantity under them (`summaries.weights`). Where no draw is, weights see nothing; short chains from the draws do, which
the run has moved (group `drift`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from onebasin.posteriors import schema

from ..summaries.variational import khat_limit
from ..summaries.weights import EVEN, khat_of_weights, tails_of, worth
from . import answers
from .measure import Facts
from .verdict import Answer, Cause, Row

LEAST = 200.0
"""Independent draws that weights have to be worth."""
DRIFTS = 4.0
"""Standard errors by which short chains may move, in a location or a spread."""
LINKED = 0.5
"""k-hat up to which a quantity is carried where another one is not."""
NAMED = 3
"""Quantities that a sentence names."""
NUTS = "Sample with NUTS (`--method nuts`, `ob.nuts`)"


Entries = tuple[str, ...]


class Found(NamedTuple):
    """The parts of a verdict."""

    answer: Answer
    sentence: str
    causes: tuple[Cause, ...]
    row: Row


def of_weights(facts: Facts) -> Found | None:
    """Judge weighted draws; None where a posterior has no weights."""
    fit, group = facts.view.group(schema.VARIATIONAL), facts.view.group(schema.WEIGHTED)
    if fit is None or group is None or schema.LOG_WEIGHT not in fit:
        return None
    log_ratio = np.asarray(fit[schema.LOG_RATIO], np.float64)
    log_weight = np.asarray(fit[schema.LOG_WEIGHT], np.float64)
    draws, khat, limit = worth(log_weight), khat_of_weights(log_ratio), khat_limit(len(log_ratio))
    are_worth = f"the {len(log_ratio):,} weighted draws are worth {draws:,.0f} independent ones"
    even = draws > EVEN * len(log_ratio)
    if not khat <= limit and not even:
        reason = f"Pareto k-hat of the weights is {khat:.2f}, above {limit:.2f}"
        return _refused(f"{reason}: a few draws decide, and {are_worth}")
    if draws < LEAST:
        return _refused(f"{are_worth[0].upper()}{are_worth[1:]}, and {LEAST:.0f} are needed")
    moved = _drifting(facts)
    if moved is not None:
        return _refused(
            f"Short chains from the draws move away, `{moved[1]}` by {moved[0]:.1f} standard errors: the posterior "
            "lies beyond the draws"
        )
    means, sds = not_carried(facts)
    sure = "the weights are all but equal" if even else f"k-hat of the weights is {khat:.2f}"
    start = f"{are_worth[0].upper()}{are_worth[1:]}, and {sure}."
    if not (means or sds):
        said = (
            "Means, intervals and sds rest on enough draws, and short chains from the draws stay."
        )
        row = Row(answers.PREDICTIONS, "passed", start)
        return Found("usable", f"You may use it. {start} {said}", (), row)
    return _partly(means, sds, start, total=sum(map(len, _entries(facts, group).values())))


def _refused(evidence: str) -> Found:
    return Found(
        "unusable",
        f"Do not use it in the posterior's place. {evidence}. {NUTS}.",
        (Cause("approximation", f"{evidence}.", f"{NUTS}."),),
        Row(answers.PREDICTIONS, "failed", f"{evidence}."),
    )


def _partly(means: Entries, sds: Entries, start: str, *, total: int) -> Found:
    """Some means or standard deviations cannot be used: which, and what to do."""
    if 2 * len(means) > total:
        return _refused(f"The tails of {_named(means)} are too heavy for these draws")
    others = "the other means" if means else "the means"
    parts = [f"Do not use mean and sd of {_named(means)}"] if means else []
    only = tuple(entry for entry in sds if entry not in means)
    if only:
        parts.append(f"Do not use the sd of {_named(only)}")
    one = len({*means, *sds}) == 1
    tail = "its tail is" if one else "their tails are"
    refused = f"{'. '.join(parts)}: {tail} too heavy for these draws."
    remedy = f"{NUTS} if you need {'it' if one else 'them'}."
    sentence = f"You may use {others} and the intervals. {refused} {start} {remedy}"
    cause = Cause("tails", refused, remedy)
    return Found("partly", sentence, (cause,), Row(answers.PREDICTIONS, "failed", refused))


def _named(entries: Entries) -> str:
    """The first entries in code type, and how many more there are."""
    shown = ", ".join(f"`{entry}`" for entry in entries[:NAMED])
    more = len(entries) - NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _entries(facts: Facts, group: xr.Dataset) -> dict[str, tuple[str, ...]]:
    """Names of the entries of the variables that decide and have weighted draws."""
    return {name: entries for name, entries in facts.names.items() if name in group}


def not_carried(facts: Facts) -> tuple[Entries, Entries]:
    """Name entries whose mean, and whose standard deviation, rests on too few weighted draws; the worst first."""
    fit, group = facts.view.group(schema.VARIATIONAL), facts.view.group(schema.WEIGHTED)
    assert fit is not None and group is not None, "there are weights"
    log_ratio = np.asarray(fit[schema.LOG_RATIO], np.float64)
    log_weight = np.asarray(fit[schema.LOG_WEIGHT], np.float64)
    limit = khat_limit(len(log_ratio))
    khats: tuple[list[tuple[float, str]], ...] = ([], [])
    for name, entries in _entries(facts, group).items():
        tails = tails_of(group[name].to_numpy(), log_ratio, log_weight)
        for found, each in zip(khats, (tails.mean, tails.square), strict=True):
            found += [(k, e) for k, e in zip(each, entries, strict=True) if not np.isnan(k)]
    means, sds = (_beyond(sorted(found, reverse=True), limit) for found in khats)
    return means, sds


def _beyond(khats: list[tuple[float, str]], limit: float) -> Entries:
    """Name the entries above the limit; where there is one, the draws miss a tail, and the others' limit is lower."""
    if khats and khats[0][0] > limit:
        limit = min(limit, LINKED)
    return tuple(entry for k, entry in khats if k > limit)


def _drifting(facts: Facts) -> tuple[float, str] | None:
    """Return the largest move of a location or a spread, in standard errors, and the entry; None if all stay."""
    group = facts.view.group(schema.DRIFT)
    if group is None:
        return None
    moves = [
        (float(move), entry)
        for name, entries in _entries(facts, group).items()
        for move, entry in zip(
            np.abs(group[name].to_numpy()).reshape(2, -1).max(axis=0), entries, strict=True
        )
        if move > DRIFTS
    ]
    return max(moves, default=None)
