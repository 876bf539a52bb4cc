"""Verdicts on what is no Markov chain: variational fits, ensembles, independent draws."""

from __future__ import annotations

import math

from .describe import left_out, unjudged
from .measure import Facts
from .verdict import Answer, Cause, Row, Verdict

_NO_LABELS = Row(
    "labels",
    "not judged",
    "Draws of one approximation have one labelling, or all of them; none switches.",
)
_NO_SAMPLER = Row("sampler", "passed", "No Markov chain was run; the draws are independent.")
_PREDICTIONS = "predictions and invariants"


def of_fit(facts: Facts) -> Verdict:
    """Draws of an approximation: k-hat alone tells how far it is from the posterior."""
    raw, fit = facts.raw, facts.raw.variational
    outcome = raw.outcome_of("k-hat")
    others = [
        c for c in raw.checks if c.outcome == "failed" and c.name not in ("k-hat", "finite draws")
    ]
    value = fit.khat if fit else math.nan
    if outcome == "passed" and not others:
        sentence = (
            f"You may use it: k-hat is {value:.2f}, so that the approximation is close enough to the posterior, "
            "and importance "
            "weights can mend the rest. The answer rests on k-hat alone; R-hat does not apply."
        )
        return _fit(
            facts, "usable", sentence, (), Row(_PREDICTIONS, "passed", f"k-hat is {value:.2f}.")
        )
    if outcome == "failed" or others:
        failed = [c for c in raw.checks if c.outcome == "failed"]
        evidence = failed[-1].sentences[0] if outcome == "failed" else others[0].sentences[0]
        cause = Cause(
            "approximation",
            evidence,
            "Take a richer family or more steps, or sample with NUTS; until then use it for starting points alone.",
        )
        row = Row(_PREDICTIONS, "failed", evidence)
        return _fit(
            facts, "unusable", f"Do not use it in the posterior's place. {evidence}", (cause,), row
        )
    return _unproved(
        facts,
        "k-hat cannot be computed, and nothing else tells how far an approximation is from its posterior",
        "Record `lp` and `log_q` of at least 30 draws, or hold the draws against those of MCMC with `compare`.",
    )


def of_ensemble(facts: Facts) -> Verdict:
    """Members that were trained one by one."""
    return _unproved(
        facts,
        "members of an ensemble are optima and no draws, and no number here tells how far they are from the "
        "posterior",
        "Hold their predictions against those of MCMC with `compare`.",
    )


def of_independent(facts: Facts) -> Verdict:
    """Draws of a program without parameters."""
    draws = f"the {facts.raw.total_draws:,} draws are independent"
    sentence = f"You may use it: nothing was sampled by a Markov chain, and {draws}."
    rows = (
        Row("labels", "passed", "There are no parameters whose labels could switch."),
        Row(_PREDICTIONS, "passed", "Independent draws need no convergence."),
        _NO_SAMPLER,
    )
    return Verdict("usable", sentence, rows, left_out=left_out(facts))


def _unproved(facts: Facts, why: str, remedy: str) -> Verdict:
    evidence = why[:1].upper() + why[1:] + "."
    cause = Cause("unproved", evidence, remedy)
    row = Row(_PREDICTIONS, "not judged", evidence)
    return _fit(
        facts,
        "unusable",
        f"Not to be used in the posterior's place: {why}. {remedy}",
        (cause,),
        row,
    )


def _fit(
    facts: Facts, answer: Answer, sentence: str, causes: tuple[Cause, ...], row: Row
) -> Verdict:
    return Verdict(
        answer,
        sentence,
        (_NO_LABELS, row, _NO_SAMPLER),
        causes,
        unjudged=unjudged(facts.raw),
        left_out=left_out(facts),
    )
