"""Verdict on draws that are no chain's: of approximations, with importance weights or without, and of ensembles.

k-hat tells how far an approximation is from the posterior. Of weighted draws the whole is judged, and each mean and
each standard deviation. Weights whose tail is too heavy rest on few draws, however many there are. That is asked of
the weights and of every quantity under them (`posteriors.weights`). Where no draw is, weights see nothing; short chains
from the draws do, which the run has moved (group `drift`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from onebasin.posteriors import schema
from onebasin.posteriors.weights import (
    EVEN,
    MIN_DRAWS_FOR_KHAT,
    khat_of_weights,
    miss_a_region,
    tails_of,
    worth,
)

from ..summaries.deciding import rhat_of_entries
from ..summaries.variational import khat_limit
from .answers import labels_cause, labels_remedy, overlap
from .labels import Labels
from .measure import Facts
from .verdict import LABELS, PREDICTIONS, SAMPLER, Answer, Extreme, Reason, Verdict

LEAST = 200.0
"""Independent draws that weights have to be worth."""
DRIFTS = 4.0
"""Standard errors by which short chains may move, in a location or a spread."""
SHIFT, INFLATION = 0.2, 1.15
"""Move of a mean by draws in other labellings, in standard deviations, and factor of one, that are let pass."""
APART = 0.8
"""Variance that alignment leaves, over what it would leave of noise, up to which components are told apart."""
LINKED = 0.5
"""k-hat up to which a quantity is carried where another one is not."""

Entries = tuple[str, ...]


_NO_SAMPLER = Reason(SAMPLER, "passed", "no chain")


def of_others(facts: Facts) -> Verdict:
    """Judge draws that are no Markov chain's, but for their labels."""
    if facts.raw.variational is not None:
        return _of_fit(facts)
    if facts.raw.sampler is not None and not facts.raw.sampler.sampled:
        rows = (
            Reason(LABELS, "passed", "labels of no parameters"),
            Reason(PREDICTIONS, "passed", "independent draws"),
            _NO_SAMPLER,
        )
        said = Reason("answer", "passed", "usable independent", {"draws": facts.raw.total_draws})
        return Verdict("usable", (said,), rows)
    return _of_unproved(Reason("unproved", "failed", "optima"), facts)


def modulo(verdict: Verdict, labels: Labels) -> Verdict:
    """Take into account what the labels of a usable approximation do.

    Draws of a fit at several optima have several labellings: a component's mean is then one over several components.
    """
    names: dict[str, Any] = {"names": labels.variables}
    state = _state(labels)
    apart = _fits_apart(labels)
    if apart.value > labels.facts.rhat_limit:
        return _refused(labels.facts, "fits apart", {"rhat": apart.value, "name": apart.parameter})
    if state == "none":
        return verdict
    if state == "stay":
        row = Reason(LABELS, "passed", "labels stay", names)
        return replace(verdict, rows=(row, *verdict.rows[1:]))
    sorts = state == "switch"
    if sorts:
        row = Reason(LABELS, "warned", "labels sorted", names)
        said = Reason("answer", "passed", "aligned fit", names)
    else:
        row = Reason(LABELS, "warned", "labels overlap", names)
        why = labels.reason or overlap(labels).sentence
        said = Reason("answer", "warned", "invariant", {"why": why})
    cause = labels_cause(labels, labels_remedy(labels, "aligned" if sorts else "invariant"))
    usable = verdict.answer == "usable"
    answer: Answer = "invariant" if not sorts else "aligned" if usable else verdict.answer
    return replace(
        verdict,
        answer=answer,
        headline=(said, *verdict.headline[1:]) if usable else (*verdict.headline, said),
        rows=(row, *verdict.rows[1:]),
        causes=(*verdict.causes, cause),
        exchangeable=labels.words,
    )


def _fits_apart(labels: Labels) -> Extreme:
    """The largest R-hat between several fits, modulo labels; not of what labels may explain that are not aligned."""
    follow = labels.state == "partial" and not labels.doubtful
    left_out = labels.variables if labels.state == "overlap" else ()
    facts, rhat = labels.facts, {"": np.nan}
    if facts.raw.num_chains > 1 and not follow:
        for name in (name for name in facts.values if name not in left_out):
            drawn = facts.values[name]
            known = rhat_of_entries(drawn.reshape(*drawn.shape[:2], -1))
            rhat |= dict(zip(facts.names[name], known, strict=True))
    return Extreme.of(pd.Series(rhat))


def _state(labels: Labels) -> str:
    """The state of labels, which few draws in another labelling change if the numbers of an entry change with them."""
    aligned = labels.aligned
    if labels.state != "stay" or aligned is None or max(aligned.switching.labellings) == 1:
        return labels.state
    after = aligned.aligned.parameters[["mean", "sd"]]
    before = aligned.raw.parameters[["mean", "sd"]].reindex(after.index)
    shift, ratio = (before["mean"] - after["mean"]).abs() / after["sd"], before["sd"] / after["sd"]
    if shift.max() <= SHIFT and ratio.max() <= INFLATION:
        return "stay"
    noise = aligned.switching.noise_ratio
    return "overlap" if noise and aligned.switching.ratio > APART * noise else "switch"


def _of_fit(facts: Facts) -> Verdict:
    """Draws of an approximation: weights, or k-hat alone, tell how far it is from the posterior."""
    if (weighted := WeightedDraws.of(facts)) is not None:
        return _of_weights(facts, weighted)
    khat = next(check for check in facts.raw.checks if check.name == "k-hat")
    failed = [check for check in facts.raw.checks if check.outcome == "failed"]
    if failed:
        first = khat if khat.outcome == "failed" else failed[0]
        return _refused(facts, "approximation", {"fact": first.sentences[0]})
    if khat.outcome == "not judged":
        least = {"least": MIN_DRAWS_FOR_KHAT}
        return _of_unproved(Reason("unproved", "failed", "no khat", least), facts)
    row = Reason(PREDICTIONS, "passed", "khat value", khat.numbers)
    said = Reason("answer", "passed", "usable fit", khat.numbers)
    return Verdict("usable", (said,), _rows(facts, row))


def _rows(facts: Facts, row: Reason) -> tuple[Reason, Reason, Reason]:
    """Set a row between that of labels, of which the search before the run tells, and that of the sampler."""
    found = facts.view.found_symmetry
    nothing = found and not any(found.get(name) for name in ("exchangeable", "blocks", "open"))
    labels = Reason(LABELS, "not judged", "labels of a fit")
    if nothing or facts.view.is_aligned:
        labels = Reason(LABELS, "passed", "no labels" if nothing else "labels unseen")
    return labels, row, _NO_SAMPLER


def _of_unproved(cause: Reason, facts: Facts) -> Verdict:
    """Draws of which nothing tells how far they are from the posterior."""
    why = f"{cause.fact[:1].lower()}{cause.fact[1:]}"
    said = Reason("answer", "failed", "unproved", {"why": why, "remedy": cause.remedy})
    row = replace(cause, name=PREDICTIONS, outcome="not judged")
    return Verdict("unusable", (said,), _rows(facts, row), (cause,))


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Draws with importance weights, raw and smoothed, as a file has them."""

    log_ratio: Float[np.ndarray, " draw"]
    log_weight: Float[np.ndarray, " draw"]
    values: xr.Dataset

    @classmethod
    def of(cls, facts: Facts) -> WeightedDraws | None:
        """Read them; None where a posterior has no weights."""
        fit, values = facts.view.group(schema.VARIATIONAL), facts.view.group(schema.WEIGHTED)
        if fit is None or values is None or schema.LOG_WEIGHT not in fit:
            return None
        log_ratio, log_weight = fit[schema.LOG_RATIO], fit[schema.LOG_WEIGHT]
        return cls(np.asarray(log_ratio, np.float64), np.asarray(log_weight, np.float64), values)


def _of_weights(facts: Facts, weighted: WeightedDraws) -> Verdict:
    """Judge weighted draws."""
    log_ratio, log_weight = weighted.log_ratio, weighted.log_weight
    khat, limit = khat_of_weights(log_ratio), khat_limit(len(log_ratio))
    draws = min(worth(log_weight), facts.view.number(schema.WORTH) or np.inf)
    numbers = {"count": len(log_ratio), "worth": draws}
    even = khat == -np.inf or draws > EVEN * len(log_ratio)
    if not khat <= limit and not even:
        own = {"khat": khat, "limit": limit, "limits": (limit,)}
        return _refused(facts, "heavy weights", numbers | own)
    if draws < LEAST:
        return _refused(facts, "few worth", numbers | {"least": LEAST})
    if miss_a_region(log_ratio, log_weight):
        own = {"share": draws / len(log_ratio), "khat": khat}
        return _refused(facts, "uneven weights", numbers | own)
    moved: list[tuple[float, str]] = []  # locations or spreads, by standard errors
    if (drift := facts.view.group(schema.DRIFT)) is not None:
        for name, entries in _entries(facts, drift).items():
            moves = np.abs(drift[name].to_numpy()).reshape(2, -1).max(axis=0)
            moved += [(float(m), e) for m, e in zip(moves, entries, strict=True) if m > DRIFTS]
    if moved:
        farthest = max(moved)
        return _refused(facts, "chains drift", {"move": farthest[0], "name": farthest[1]})
    means, sds = not_carried(facts, weighted)
    own = {"khat": khat, "limits": (limit,)}
    if even:
        own = {"even": "all but equal" if draws > EVEN * len(log_ratio) else "similar"}
    row = Reason(PREDICTIONS, "passed", "worth of weights", numbers | own)
    if not (means or sds):
        stay = {} if drift is None else {"stay": "stay"}
        said = Reason("answer", "passed", "usable weights", stay)
        return Verdict("usable", (said, row), _rows(facts, row))
    if 2 * len(means) > sum(map(len, _entries(facts, weighted.values).values())):
        return _refused(facts, "tails of most", {"names": means})
    only = tuple(entry for entry in sds if entry not in means)
    one = len({*means, *sds}) == 1
    told: dict[str, object] = {"tail": "its tail is" if one else "their tails are"}
    told |= {"means": means} if means else {}
    told |= {"sds": only} if only else {}
    told |= {"then": ". "} if means and only else {}
    cause = Reason("tails", "failed", "heavy tails", told)
    others = "the other means" if means else "the means"
    said = Reason("answer", "warned", "usable in part", {"others": others})
    rows = _rows(facts, replace(row, outcome="warned"))
    return Verdict("partly", (said, cause, row), rows, (cause,))


def _refused(facts: Facts, kind: str, numbers: Mapping[str, object]) -> Verdict:
    """Say that draws of an approximation are not the posterior's, and why."""
    cause = Reason("approximation", "failed", kind, numbers)
    said = Reason("answer", "failed", "bad fit")
    rows = _rows(facts, replace(cause, name=PREDICTIONS))
    return Verdict("unusable", (said, cause), rows, (cause,))


def _entries(facts: Facts, group: xr.Dataset) -> dict[str, tuple[str, ...]]:
    """Names of the entries of the variables that decide and have weighted draws."""
    return {name: entries for name, entries in facts.names.items() if name in group}


def not_carried(facts: Facts, weighted: WeightedDraws) -> tuple[Entries, Entries]:
    """Name entries whose mean, and whose standard deviation, rests on too few weighted draws; the worst first."""
    limit = khat_limit(len(weighted.log_ratio))
    khats: tuple[list[tuple[float, str]], ...] = ([], [])
    for name, entries in _entries(facts, weighted.values).items():
        values = weighted.values[name].to_numpy()
        tails = tails_of(values, weighted.log_ratio, weighted.log_weight)
        for found, each in zip(khats, (tails.mean, tails.square), strict=True):
            found += [(k, e) for k, e in zip(each, entries, strict=True) if not np.isnan(k)]
    means, sds = (sorted(found, reverse=True) for found in khats)
    # Where one is above the limit, the draws miss a tail, and the others' limit is lower.
    least = [min(limit, LINKED) if own and own[0][0] > limit else limit for own in (means, sds)]
    return tuple(e for k, e in means if k > least[0]), tuple(e for k, e in sds if k > least[1])
