"""Verdict on draws with importance weights: of the whole, and of each mean and each standard deviation.

Weights whose tail is too heavy rest on few draws, however many there are. That is asked of the weights and of every
quantity under them (`posteriors.weights`). Where no draw is, weights see nothing; short chains from the draws do, which
the run has moved (group `drift`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from onebasin.posteriors import schema
from onebasin.posteriors.weights import EVEN, khat_of_weights, tails_of, worth

from ..summaries.variational import khat_limit
from .measure import Facts
from .verdict import PREDICTIONS, Reason, Verdict

LEAST = 200.0
"""Independent draws that weights have to be worth."""
DRIFTS = 4.0
"""Standard errors by which short chains may move, in a location or a spread."""
LINKED = 0.5
"""k-hat up to which a quantity is carried where another one is not."""

Entries = tuple[str, ...]


def of_weights(facts: Facts) -> Verdict | None:
    """Judge weighted draws; None where a posterior has no weights. The row of labels is whoever asks."""
    fit, group = facts.view.group(schema.VARIATIONAL), facts.view.group(schema.WEIGHTED)
    if fit is None or group is None or schema.LOG_WEIGHT not in fit:
        return None
    log_ratio = np.asarray(fit[schema.LOG_RATIO], np.float64)
    log_weight = np.asarray(fit[schema.LOG_WEIGHT], np.float64)
    draws, khat, limit = worth(log_weight), khat_of_weights(log_ratio), khat_limit(len(log_ratio))
    numbers = {"count": len(log_ratio), "worth": draws}
    even = draws > EVEN * len(log_ratio)
    if not khat <= limit and not even:
        own = {"khat": khat, "limit": limit, "limits": (limit,)}
        return refused("heavy weights", numbers | own)
    if draws < LEAST:
        return refused("few worth", numbers | {"least": LEAST})
    moved = _drifting(facts)
    if moved is not None:
        return refused("chains drift", {"move": moved[0], "name": moved[1]})
    means, sds = not_carried(facts)
    own = {"even": "all but equal"} if even else {"khat": khat, "limits": (limit,)}
    row = Reason(PREDICTIONS, "passed", "worth of weights", numbers | own)
    if not (means or sds):
        return Verdict("usable", (Reason("answer", "passed", "usable weights"), row), (row,))
    if 2 * len(means) > sum(map(len, _entries(facts, group).values())):
        return refused("tails of most", {"names": means})
    cause = _heavy(means, sds)
    others = "the other means" if means else "the means"
    said = Reason("answer", "warned", "usable in part", {"others": others})
    return Verdict("partly", (said, cause, row), (replace(row, outcome="warned"),), (cause,))


def refused(kind: str, numbers: Mapping[str, object]) -> Verdict:
    """Say that draws of an approximation are not the posterior's, and why."""
    cause = Reason("approximation", "failed", kind, numbers)
    row = replace(cause, name=PREDICTIONS)
    return Verdict("unusable", (Reason("answer", "failed", "bad fit"), cause), (row,), (cause,))


def _heavy(means: Entries, sds: Entries) -> Reason:
    """Name the means and standard deviations that cannot be used."""
    only = tuple(entry for entry in sds if entry not in means)
    one = len({*means, *sds}) == 1
    numbers: dict[str, object] = {"tail": "its tail is" if one else "their tails are"}
    numbers |= {"means": means} if means else {}
    numbers |= {"sds": only} if only else {}
    numbers |= {"then": ". "} if means and only else {}
    return Reason("tails", "failed", "heavy tails", numbers)


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
