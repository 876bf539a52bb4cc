"""Verdict on draws with importance weights: of the whole, and of each mean and each standard deviation.

Weights whose tail is too heavy rest on few draws, however many there are. That is asked of the weights and of every
quantity under them (`posteriors.weights`). Where no draw is, weights see nothing; short chains from the draws do, which
the run has moved (group `drift`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from onebasin.posteriors import schema
from onebasin.posteriors.weights import EVEN, khat_of_weights, tails_of, worth

from ..summaries.variational import khat_limit
from .measure import Facts
from .verdict import Answer, Reason

LEAST = 200.0
"""Independent draws that weights have to be worth."""
DRIFTS = 4.0
"""Standard errors by which short chains may move, in a location or a spread."""
LINKED = 0.5
"""k-hat up to which a quantity is carried where another one is not."""

Entries = tuple[str, ...]


def of_weights(facts: Facts) -> tuple[Answer, Reason, Reason] | None:
    """Judge weighted draws: the answer, what it says, and its cause; None where a posterior has no weights.

    Of a posterior that is usable the cause is what shows it.
    """
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
        return _refused("heavy weights", numbers | own)
    if draws < LEAST:
        return _refused("few worth", numbers | {"least": LEAST})
    drift = facts.view.group(schema.DRIFT)
    moved: list[tuple[float, str]] = []  # locations or spreads, by standard errors
    for name, entries in _entries(facts, drift).items() if drift is not None else ():
        moves = np.abs(drift[name].to_numpy()).reshape(2, -1).max(axis=0)
        moved += [(float(m), e) for m, e in zip(moves, entries, strict=True) if m > DRIFTS]
    if moved:
        farthest = max(moved)
        return _refused("chains drift", {"move": farthest[0], "name": farthest[1]})
    means, sds = not_carried(facts)
    own = {"even": "all but equal"} if even else {"khat": khat, "limits": (limit,)}
    shown = Reason("weights", "passed", "worth of weights", numbers | own)
    if not (means or sds):
        said = Reason("answer", "passed", "usable weights", {"why": shown.evidence})
        return "usable", said, shown
    if 2 * len(means) > sum(map(len, _entries(facts, group).values())):
        return _refused("tails of most", {"names": means})
    # Some means or standard deviations cannot be used: which, and what to do.
    only = tuple(entry for entry in sds if entry not in means)
    one = len({*means, *sds}) == 1
    told: dict[str, object] = {"tail": "its tail is" if one else "their tails are"}
    told |= {"means": means} if means else {}
    told |= {"sds": only} if only else {}
    told |= {"then": ". "} if means and only else {}
    cause = Reason("tails", "failed", "heavy tails", told)
    others = "the other means" if means else "the means"
    why = f"{cause.evidence} {shown.evidence} {cause.remedy}"
    said = Reason("answer", "warned", "usable in part", {"others": others, "why": why})
    return "partly", said, cause


def _refused(kind: str, numbers: Mapping[str, object]) -> tuple[Answer, Reason, Reason]:
    cause = Reason("approximation", "failed", kind, numbers)
    return "unusable", Reason("answer", "failed", "bad fit", {"why": cause.in_short}), cause


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
    means, sds = (sorted(found, reverse=True) for found in khats)
    # Where one is above the limit, the draws miss a tail, and the others' limit is lower.
    least = [min(limit, LINKED) if own and own[0][0] > limit else limit for own in (means, sds)]
    return tuple(e for k, e in means if k > least[0]), tuple(e for k, e in sds if k > least[1])
