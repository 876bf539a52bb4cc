"""The verdict as data: what the answer says, its three rows, its causes, and the remarks next to them.

Where draws are not finite or chains stand still nothing else is looked at. Of Markov chains a `Case` is judged.
`approximations` judges draws that are no chain's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from onebasin.models.symmetry.words import spelt_options

from ..alignment.switching import one_labelling
from ..discovery.density import advice
from .causes import times_as_many
from .checks import BIAS, bounds, own_words
from .describe import listed
from .judge import Case
from .labels import Labels
from .measure import Facts
from .result import Diagnosis
from .verdict import (
    LABELS,
    PREDICTIONS,
    SAMPLER,
    Answer,
    Extreme,
    Outcome,
    Reason,
    Verdict,
    overall,
)

MEANS, SPREADS = 0.1, 1.1
"""Components are equal if their means differ by less than this share of their sd, and their sds by this factor."""
MOST_PARTS = 64
"""Variables with more components are no labels' ones."""
_STOPPED = {
    "not-finite": "draws are not finite",
    "stuck": "a chain stands still",
    "copies": "chains are copies of one another",
    "resampled": "few draws are distinct",
    "weighted": "weights of the draws were not used",
}
_SAMPLER_CHECKS = ("moving chains", "divergences", "tree depth", "E-BFMI", BIAS)
BLAMES = {
    "funnel": ("divergences", "E-BFMI"),
    "divergences": ("divergences",),
    "step-size": (BIAS,),
    "stuck": ("moving chains",),
}
"""Checks of the sampler that a cause rests on: a number that is warned of forbids use there."""


def of_stopped(facts: Facts, *causes: Reason) -> Verdict:
    """Draws that are not finite or few, chains that stand still or are copies: nothing else is looked at."""
    first, last = causes[0], causes[-1]
    broken = last.name in ("not-finite", "weighted")
    rows = (
        Reason(LABELS, "not judged", "labels unjudged", {"why": _STOPPED[last.name]}),
        replace(first, name=PREDICTIONS),
        _sampler(facts.raw, causes) if broken else replace(last, name=SAMPLER),
    )
    return Verdict("unusable", (_do_not_use(first),), rows, causes)


def of_chains(case: Case) -> Verdict:
    """Markov chains whose draws are finite and move."""
    labels, answer, raw = case.labels, case.answer, case.before.raw
    slow = tuple(_slow_invariants(case)) if answer != "invariant" else ()
    switched = (_labels_cause(labels, case),) if labels.state in ("switch", "overlap") else ()
    causes = switched if answer in ("aligned", "invariant") else (*case.causes, *switched, *slow)
    if labels.state == "partial" and case.keeps_heights:
        own = _labels_cause(labels, case)
        causes = (own, *case.causes) if case.blames_labels else (*case.causes, own)
    headline = list(_headline(case, answer, causes))
    if case.modes is not None:
        headline.append(own_words("modes", case.modes.sentence))
    rows = (_labels_row(labels, raw, case), _predictions_row(case, answer), _sampler(raw, causes))
    words = labels.words if answer != "unusable" or case.keeps_heights else ()
    more = [*_alike_parts(case.before)] if answer == "usable" and labels.state == "none" else []
    if answer == "unusable" and raw.method == "mclmc" and case.before.view.network:
        more.append(Reason("network", "not judged", "as an ensemble"))
    if (points := case.given or case.points) and (case.given or answer != "partly"):
        more.append(points.reason("points agree" if answer == "unusable" else "points"))
    if case.modes is not None and case.modes.remark:
        more.append(own_words("modes", case.modes.remark))
    return Verdict(answer, tuple(headline), rows, causes, words, tuple(more))


def _do_not_use(cause: Reason, **numbers: Any) -> Reason:
    return Reason("answer", "failed", "do not use", {"why": cause.evidence} | numbers)


def _headline(case: Case, answer: Answer, causes: tuple[Reason, ...]) -> Iterator[Reason]:
    labels, raw = case.labels, case.before.raw
    if answer == "unusable":
        switches = labels.state == "switch" and case.keeps_heights
        switch = {"names": labels.variables} if switches else {}
        yield _do_not_use(causes[0], **switch)
        return
    if answer == "usable":
        yield from _usable(case)
    elif answer == "aligned":
        move = "move together" if len(labels.symmetry) == 1 else "move"
        numbers: dict[str, Any] = {
            "who": "Chains agree" if raw.num_chains > 1 else "The chain's halves agree",
            "least": "at least " if labels.found else "",
            "names": labels.variables,
            "move": "moves" if len(labels.variables) == 1 else move,
            "before": case.before.worst_rhat.value,
            "after": case.after.worst_rhat.value,
            "limits": raw.numbers.limits_of("rhat"),
        } | ({"words": labels.words} if labels.words else {})
        apart = numbers["before"] > case.limits.deciding_rhat
        kind = "aligned" if apart else "aligned at every draw"
        yield Reason("answer", "passed", "aligned by rotation" if labels.rotated else kind, numbers)
    elif answer == "partly" and case.points is not None:
        yield case.points.reason("usable at points", "answer")
    else:
        why = overlap(labels).sentence
        yield Reason("answer", "warned", "invariant", {"why": why})
    for check in raw.checks:
        if check.name in _SAMPLER_CHECKS and check.outcome in ("failed", "warned"):
            yield check
    if raw.outcome_of(BIAS) == "not judged":
        known = bounds(raw.sampler) if raw.sampler is not None else {}
        yield Reason(BIAS, "not judged", "bias bounded" if known else "bias unknown", known)


def _usable(case: Case) -> Iterator[Reason]:
    facts, raw = case.before, case.before.raw
    worst, least, limits = facts.worst_rhat, facts.least_ess, raw.limits
    if math.isnan(worst.value) and math.isnan(least.value):
        yield Reason("answer", "not judged", "nothing to judge")
        return
    numbers = {"rhat": worst.value, "ess": least.value, "limits": raw.numbers.limits_of("rhat")}
    kind = "usable by one chain" if raw.num_chains == 1 else "usable"
    yield Reason("answer", limits.outcome("rhat", worst.value), kind, numbers)
    above = int((facts.table["rhat"] > limits.rhat).sum())
    if above:
        bad = {"bad": above, "count": len(facts.table), "limit": limits.rhat}
        own = numbers | bad | {"name": worst.parameter}
        yield Reason("R-hat", "warned", "rhat slightly", own)
    tail = Extreme.of(raw.parameters["ess_tail"].reindex(facts.table.index), smallest=True)
    if limits.outcome("ess_tail", tail.value, raw.num_chains) == "warned":
        own = {"name": tail.parameter, "ess": tail.value, "limits": (raw.min_ess,)}
        yield Reason("tail ESS", "warned", "tails", own)
    if case.labels.state == "stay":
        yield Reason("labels", "passed", "one labelling")
    if raw.num_chains > 1 and (missing := _missing(raw)):
        yield Reason("sampler", "not judged", "nothing recorded", {"what": missing})


def overlap(labels: Labels) -> Reason:
    """Say why alignment does not tell which component is which."""
    names: dict[str, Any] = {"names": labels.variables}
    found = next((candidate for candidate in labels.found if not candidate.certain), None)
    kind = "parts apart" if labels.state == "switch" else "parts alike"
    if labels.near:
        kind = "parts nearly"
    if pair := labels.unclear_pair:
        kind, names = "parts spare", names | {"first": pair.first, "second": pair.second}
        if pair.turned:
            kind, names = "parts spare turned", {"names": (pair.turned,), "first": pair.first}
    if labels.turning:
        kind, names = "parts turn", {"names": labels.turning}
        if labels.unclear:
            kind, names = "rotation unclear", {"why": labels.unclear}
    elif found is not None and found.size > 1:
        kind, (first, second) = "parts overlap", found.closest
        if first != second:
            names |= {"first": first, "second": second, "distance": found.distance}
    return Reason("labels", "warned", kind, names)


def _slow_invariants(case: Case) -> Iterator[Reason]:
    """Name the slowest label-free quantity, where these are all that could be used and are known by too few draws."""
    table, raw = case.labels.invariants, case.before.raw
    if case.labels.state != "overlap" or case.causes or case.invariants_agree or table.empty:
        return
    least, rhat = Extreme.of(table["ess_bulk"], smallest=True), Extreme.of(table["rhat"]).value
    if least.value < raw.min_ess:
        times = times_as_many(least.value, raw.min_ess, rhat, raw.limits.deciding_rhat)
        numbers = {"name": least.parameter, "ess": least.value, "draws": raw.total_draws}
        yield Reason("short", "failed", "short", numbers | {"times": times})


def _labels_cause(labels: Labels, case: Case) -> Reason:
    before, after = case.before.worst_rhat.value, case.after.worst_rhat.value
    if labels.state == "partial":
        moves, own = labels_move(labels).fact, advice(labels.facts.view)
        told = {"moves": moves, "why": labels.reason, "advice": own}
        return Reason("labels", "failed", "labels with others", told)
    numbers: dict[str, Any] = {}
    if before > case.limits.deciding_rhat and not (labels.turning or labels.near):
        numbers = {
            "before": before,
            "after": after,
            "limits": case.before.raw.numbers.limits_of("rhat"),
        }
    elif labels.found:
        numbers["kept"] = labels.found[0].gain.beside_noise
    remedy = labels_remedy(labels, case.answer, heights=case.keeps_heights, sorts=case.is_sorted)
    outcome: Outcome = "failed" if case.answer == "unusable" else "warned"
    return labels_cause(labels, remedy, outcome, **numbers)


def labels_cause(
    labels: Labels, remedy: Reason, outcome: Outcome = "warned", **numbers: Any
) -> Reason:
    """Say what the labels do, and what to do about it."""
    told = {"moves": labels_move(labels).fact, "remedy": remedy.sentence}
    return Reason("labels", outcome, "labels", told | numbers)


def labels_remedy(
    labels: Labels, answer: Answer, *, heights: bool = True, sorts: bool = True
) -> Reason:
    """Say what to do about labels: only what was tried, and works.

    `heights`: the log density agrees between chains. `sorts`: alignment brings them together.
    """
    options: dict[str, Any] = {"options": spelt_options(labels.words)} if labels.words else {}
    if options and (few := labels.few_places):
        places = tuple(dict.fromkeys(str(place) for each in few for place in each.places))
        options |= {"places": places, "few": spelt_options(tuple(each.word for each in few))}
    if labels.turning:
        return Reason("labels", "warned", "use no rotation", {} if labels.unclear else options)
    if labels.rotated and answer == "aligned":
        return Reason("labels", "warned", "use rotated")
    if labels.state == "overlap" or answer in ("invariant", "partly"):
        return Reason("labels", "warned", "use no labels", options)
    if answer == "aligned":
        return Reason("labels", "warned", "use aligned", options)
    if not heights:
        return Reason("labels", "failed", "no equal modes")
    if not sorts:
        return Reason("labels", "failed", "use neither")
    return Reason("labels", "warned", "use aligned", options)


def labels_move(labels: Labels) -> Reason:
    """Say what the labels do, by the kind of blocks that move them."""
    names = {"names": labels.variables}
    together = len(labels.variables) > 1
    if turning := labels.turning or labels.rotated:
        return Reason("labels", "warned", "labels turn", {"names": turning})
    whole = labels.symmetry and not any(block.axes for block in labels.symmetry)
    if whole and all(block.flipped for block in labels.symmetry):
        verb, end = ("change", " together") if together else ("changes", "")
        return Reason("labels", "warned", "labels change sign", names | {"verb": verb, "end": end})
    if whole and all(set(block.variables) == set(block.complemented) for block in labels.symmetry):
        them = {"them": "them" if together else "it"}
        return Reason("labels", "warned", "labels complement", names | them)
    return Reason("labels", "warned", "labels change places", names)


def _labels_row(labels: Labels, raw: Diagnosis, case: Case) -> Reason:
    if not labels.looked:
        return Reason(LABELS, "not judged", "labels not looked at")
    state, numbers = labels.state, {"names": labels.variables, "turning": labels.turning}
    if not labels.rotated:  # a rotation is told whatever the state
        if state == "none" and raw.num_chains > 1 and not case.is_open:
            return Reason(LABELS, "passed", "labels unseen")
        if state == "none":
            kind = "labels of one chain" if raw.num_chains == 1 else "labels open"
            return Reason(LABELS, "not judged", kind)
        if state == "stay":
            one = one_labelling(labels.aligned.alignment) if labels.aligned is not None else None
            caveat = {"caveat": one.sentence} if one is not None else {}
            return Reason(LABELS, "passed", "labels stay", numbers | caveat)
    sorts = "not sorted" if case.answer == "invariant" or not case.is_sorted else "sorted"
    kinds = {
        "switch": f"labels {sorts}",
        "partial": "labels in company",
        "overlap": "labels turning" if labels.turning else "labels overlap",
    }
    kind = f"rotation {sorts}" if labels.rotated else kinds[state]
    kind = "labels nearly" if labels.near else kind
    kind = "labels overlap" if labels.unclear_pair else kind
    if state in ("switch", "partial") and not case.keeps_heights:
        kind = "labels unlike"
    return Reason(LABELS, "failed" if case.answer == "unusable" else "warned", kind, numbers)


def _predictions_row(case: Case, answer: Answer) -> Reason:
    facts, raw = case.before, case.before.raw
    if answer == "partly" and case.points is not None:
        return case.points.reason("points", PREDICTIONS)
    lp, lp_ess = facts.lp_numbers
    limits = {"limits": raw.numbers.limits_of("rhat")}
    apart = {}
    if case.heights and case.heights.unlike and answer == "unusable":
        apart = case.heights.apart
    alike = case.heights is not None and not case.heights.unlike
    if facts.lp_is_bad and not (alike and len(case.identified.bad_rhat)):
        if lp > case.limits.deciding_rhat:
            return Reason(PREDICTIONS, "failed", "lp apart", {"rhat": lp} | limits | apart)
        return Reason(PREDICTIONS, "failed", "lp too slow", {"ess": lp_ess} | apart)
    if case.labels.aligned is not None or case.labels.state in ("overlap", "partial"):
        worst = case.worst_invariant
        if math.isnan(worst.value):
            return Reason(PREDICTIONS, "not judged", "no invariants")
        numbers = {"rhat": worst.value} | limits | apart
        if worst.value > case.limits.deciding_rhat:
            named = numbers | {"name": worst.parameter}
            return Reason(PREDICTIONS, "failed", "invariants apart", named)
        if answer == "unusable":
            return Reason(PREDICTIONS, "failed", "invariants blocked", numbers)
        own = raw.limits.outcome("rhat", worst.value)
        return Reason(PREDICTIONS, own, "invariants", numbers)
    if answer == "unusable":
        return Reason(PREDICTIONS, "failed", "unreliable", apart)
    if raw.num_chains == 1:
        return Reason(PREDICTIONS, "not judged", "halves agree")
    numbers = {"rhat": facts.worst_rhat.value} | limits
    if not math.isnan(lp):
        numbers["lp"] = lp
    own = raw.limits.outcome("rhat", facts.worst_rhat.value)
    return Reason(PREDICTIONS, own, "all agree", numbers)


def _sampler(raw: Diagnosis, causes: tuple[Reason, ...]) -> Reason:
    """Judge what the sampler recorded about itself."""
    own = tuple(check for check in raw.checks if check.name in _SAMPLER_CHECKS)
    checks = blamed(own, causes)
    found = [check for check in checks if check.outcome in ("failed", "warned")]
    if found:
        text = " ".join(f"{check.fact}." for check in found)
        return Reason(SAMPLER, overall(found), "own words", {"fact": text})
    biased = next((c for c in checks if c.name == BIAS and c.outcome == "not judged"), None)
    if biased is not None:
        return replace(biased, name=SAMPLER)
    if missing := _missing(raw):
        return Reason(SAMPLER, "not judged", "sampler unjudged", {"what": missing})
    if not checks or raw.sampler is None:
        return Reason(SAMPLER, "not judged", "sampler unknown")
    numbers: dict[str, Any] = dict(bounds(raw.sampler)) | {"limits": (raw.limits.bfmi,)}
    if raw.outcome_of("tree depth") == "passed":
        numbers["trees"] = ", no tree at its limit"
    if raw.sampler.bfmi:
        numbers["bfmi"] = raw.sampler.min_bfmi
    return Reason(SAMPLER, "passed", "sampler sound", numbers)


def blamed(checks: tuple[Reason, ...], causes: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Fail the checks that a cause rests on."""
    names = {name for cause in causes for name in BLAMES.get(cause.name, ())}
    return tuple(
        replace(c, outcome="failed") if c.name in names and c.outcome == "warned" else c
        for c in checks
    )


def _missing(raw: Diagnosis) -> str:
    """Names of checks for which nothing was recorded."""
    names = [
        check.name
        for check in raw.checks
        if check.outcome == "not judged"
        and check.name in (*_SAMPLER_CHECKS, "log density")
        and check.name != BIAS
    ]
    return listed(names, len(names), code=False)


def _alike_parts(facts: Facts) -> Iterator[Reason]:
    """Name vectors whose entries have one and the same posterior."""
    for name, drawn in facts.values.items():
        if drawn.ndim == 3 and 2 <= drawn.shape[2] <= MOST_PARTS:
            rows = facts.raw.parameters.reindex(list(facts.names[name]))
            mean, sd = rows["mean"].to_numpy(), rows["sd"].to_numpy()
            known = np.isfinite(mean).all() and sd.min() > 0
            if known and np.ptp(mean) < MEANS * sd.min() and sd.max() < SPREADS * sd.min():
                numbers = {"name": name, "last": drawn.shape[2] - 1}
                yield Reason("labels", "not judged", "alike parts", numbers)
