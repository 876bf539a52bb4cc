"""Verdicts in words: the answer's sentence, its three rows, its causes, and what stands beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..alignment.switching import one_labelling
from .causes import Heights
from .describe import alike_parts, left_out, listed, rhat, unjudged
from .judge import Case
from .labels import Labels
from .measure import Facts
from .method_checks import BIAS, bounds
from .result import Diagnosis
from .verdict import Answer, Cause, Extreme, Row, Verdict

LABELS, PREDICTIONS, SAMPLER = "labels", "predictions and invariants", "sampler"
_SAMPLER_CHECKS = ("moving chains", "divergences", "tree depth", "E-BFMI", BIAS)


def of_stopped(facts: Facts, *causes: Cause) -> Verdict:
    """Draws that are not finite, or chains that stand still: nothing else is looked at."""
    first, last = causes[0], causes[-1]
    broken = last.name == "not-finite"
    why = f"Not judged: {'draws are not finite' if broken else 'a chain stands still'}."
    return Verdict(
        "unusable",
        f"Do not use it. {first.evidence}",
        (
            Row(LABELS, "not judged", why),
            Row(PREDICTIONS, "failed", first.evidence),
            _sampler(facts.raw) if broken else Row(SAMPLER, "failed", last.evidence),
        ),
        causes,
        unjudged=unjudged(facts.raw),
        left_out=left_out(facts),
    )


def of_chains(case: Case) -> Verdict:
    """Markov chains whose draws are finite and move."""
    labels, answer = case.labels, case.answer
    raw = case.before.raw
    switched = (
        (_labels_cause(labels, case),) if labels.state in ("switch", "overlap", "partial") else ()
    )
    causes = switched if answer in ("aligned", "invariant") else (*case.causes, *switched)
    if labels.state == "partial":
        causes = (*switched, *case.causes)
    alike = alike_parts(case.before) if answer == "usable" and labels.state == "none" else ()
    return Verdict(
        answer,
        " ".join((*_headline(case, answer, causes), *_modes(case))),
        (_labels_row(labels, raw, case), _predictions_row(case, answer), _sampler(raw)),
        causes,
        labels.words,
        (*unjudged(raw), *alike, *_as_ensemble(case, answer), *_missed(case)),
        left_out(case.before),
    )


def _headline(case: Case, answer: Answer, causes: tuple[Cause, ...]) -> Iterator[str]:
    labels, checks = case.labels, case.before.raw.checks
    if answer == "usable":
        yield from _usable(case)
    elif answer == "aligned":
        yield _aligned(case)
    elif answer == "invariant":
        yield (
            f"Use only what has no labels: predictions, densities, sums over parts. {_overlap(labels)}"
        )
    else:
        yield f"Do not use it. {causes[0].evidence}"
        if labels.state == "switch":
            yield f"Besides, labels of {listed(labels.variables)} switch."
        return
    failures = (c for c in checks if c.name in _SAMPLER_CHECKS and c.outcome == "failed")
    yield from (check.in_short for check in failures if check.fact)
    yield from _bias(case.before.raw)


def _modes(case: Case) -> Iterator[str]:
    """The modes that it was put together from."""
    if case.modes is not None:
        yield case.modes.sentence


def _missed(case: Case) -> Iterator[str]:
    """What starts may have missed."""
    if case.modes is not None and case.modes.remark:
        yield case.modes.remark


def _as_ensemble(case: Case, answer: Answer) -> Iterator[str]:
    """What networks' chains that do not agree are good for all the same."""
    if answer == "unusable" and case.before.raw.method == "mclmc" and case.before.view.network:
        yield (
            "As an ensemble over modes the chains may still predict well: score them by "
            "`ob.networks.score_predictions`, and see by `ob.networks.summarise_predictions` where they agree."
        )


def _bias(raw: Diagnosis) -> Iterator[str]:
    """What chains that agree cannot show."""
    if raw.outcome_of(BIAS) != "not judged":
        return
    if raw.sampler is not None and raw.sampler.identities is not None:
        yield (
            "Its draws may have a bias of the step size, which agreement between chains does not show: "
            f"{bounds(raw.sampler.identities)}."
        )
    else:
        yield "Its draws have a bias of the step size, which agreement between chains does not show."


def _usable(case: Case) -> Iterator[str]:
    facts, raw = case.before, case.before.raw
    worst, least = facts.worst_rhat, facts.least_ess
    if math.isnan(worst.value) and math.isnan(least.value):
        yield "There is nothing to judge: no parameter varies."
        return
    ess = f"there are at least {least.value:,.0f} effective draws"
    if raw.num_chains == 1:
        yield (
            f"You may use it as far as one chain can tell: its halves agree (R-hat at most {rhat(worst.value)}) "
            f"and {ess}, "
            "but modes that it did not meet cannot be seen."
        )
    else:
        yield f"You may use it: R-hat is at most {rhat(worst.value)}, and {ess}."
    above = int((facts.table["rhat"] > raw.limits.rhat).sum())
    if above:
        yield (
            f"R-hat is above {raw.limits.rhat:g} for {above} of {len(facts.table)} parameters "
            f"(`{worst.parameter}`), which "
            "more draws would mend."
        )
    tail = raw.parameters["ess_tail"].reindex(facts.table.index)
    if tail.min() < raw.min_ess:
        found = Extreme.of(tail, smallest=True)
        yield f"Its tails are rough: `{found.parameter}` has a tail ESS of {found.value:.0f}."
    if case.labels.state == "stay":
        yield "All chains have one labelling of the declared symmetry."
    if raw.num_chains > 1 and (missing := _missing(raw)):
        yield f"{missing} could not be judged, for nothing of the kind was recorded."


def _aligned(case: Case) -> str:
    labels, after = case.labels, case.after
    before, now = case.before.worst_rhat.value, after.worst_rhat.value
    names = listed(labels.variables)
    least = "at least " if labels.found else ""
    words = f" (declare {listed(labels.words)})" if labels.words else ""
    move = "move together" if len(labels.variables) > 1 else "moves"
    if before > case.before.rhat_limit:
        return (
            f"Chains agree once labels are aligned: {least}{names} {move}{words}. Use aligned means; R-hat falls "
            "from "
            f"{rhat(before)} to {rhat(now)}."
        )
    return (
        f"Every R-hat is good, yet labels switch all the time: {least}{names} {move}{words}, so that the mean of "
        "one part is "
        "an average over all parts. Use aligned means."
    )


def _overlap(labels: Labels) -> str:
    names = listed(labels.variables)
    found = labels.found[0] if labels.found and not labels.found[0].certain else None
    if found is not None and found.turns:
        return (
            f"Parts of {names} turn into one another: alignment would sort them, not find them. Use what no rotation "
            "changes, such as L L' of loadings L, or a Procrustes rotation."
        )
    if found is not None and found.size > 1:
        first, second = found.numbers.closest
        which = (
            f" (parts {first} and {second} are {found.numbers.distance:.1f} sds apart)"
            if first != second
            else ""
        )
        return f"Parts of {names} overlap{which}: alignment would sort them, not find them."
    if labels.state == "switch":
        return f"Alignment does not bring the chains' {names} together, while what has no labels agrees."
    return f"Labels of {names} switch, and the parts overlap: alignment would sort them, not find them."


def _labels_cause(labels: Labels, case: Case) -> Cause:
    before, after = case.before.worst_rhat.value, case.after.worst_rhat.value
    names = listed(labels.variables)
    shown = _moves(labels, names)
    if labels.state == "partial":
        return Cause(
            "labels",
            f"{shown}, and {listed(labels.companions)} differ between labellings in the same way. To move one without "
            "the other would leave the posterior, so nothing was aligned.",
            "If these belong to the components, write them as arrays in the model (`vector[2] mu` in place of `mu1` "
            "and `mu2`), so that onebasin can move all of it together. If they do not, the chains disagree about them: "
            "sample again, longer or from other starting points.",
        )
    if before > case.before.rhat_limit:
        shown += f": R-hat {rhat(before)} as the draws came, {rhat(after)} with labels aligned"
    elif labels.found:
        kept = labels.found[0].numbers.beside_noise
        shown += f" at every draw: alignment leaves {kept:.2f} of what it would leave of noise"
    return Cause("labels", f"{shown}.", " ".join(_labels_remedy(labels, case)))


def _labels_remedy(labels: Labels, case: Case) -> Iterator[str]:
    """What to do about labels; aligned draws are no help where alignment does not find the parts."""
    words = labels.words
    if labels.state == "overlap" or case.answer == "invariant":
        if words:
            yield f"To look at the parts all the same, align them by {_options(words)}."
        yield "Use what has no labels, or tell the parts apart in the model: an order, unlike priors."
        return
    if case.is_sorted:
        yield "Use aligned draws: `ob.align(posterior)`, or `onebasin align`."
    else:
        yield "Alignment does not bring the chains together: see to the other cause first."
    if words:
        yield (
            f"Declare them before the next run, by {_options(words)}, and they are checked on the log density."
        )


def _moves(labels: Labels, names: str) -> str:
    """What the labels do."""
    together = " together" if len(labels.variables) > 1 else ""
    if any(candidate.turns for candidate in labels.found):
        return f"The parts of {names} turn into one another"
    whole = labels.symmetry and not any(block.axes for block in labels.symmetry)
    if whole and all(block.flipped for block in labels.symmetry):
        return f"{names} change sign{together}" if together else f"{names} changes sign"
    if whole and all(set(block.variables) == set(block.complemented) for block in labels.symmetry):
        return f"{names} or 1 minus {'them' if together else 'it'} cannot be told apart"
    return f"The parts of {names} change places"


def _options(words: tuple[str, ...]) -> str:
    """How to declare what was found, in Python and on the command line."""
    quoted = [f'"{word}"' for word in words]
    given = quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"
    options = " ".join(f"--exchangeable {word}" for word in words)
    return f"`symmetry={given}` or `{options}`"


def _labels_row(labels: Labels, raw: Diagnosis, case: Case) -> Row:
    if not labels.looked:
        return Row(LABELS, "not judged", "Labels were not looked at.")
    names = listed(labels.variables) if labels.variables else ""
    if labels.state == "switch":
        sorts = (
            ", and alignment does not bring the chains together"
            if case.answer == "invariant" or not case.is_sorted
            else "; alignment sorts them"
        )
        return Row(LABELS, "failed", f"Labels of {names} switch{sorts}.")
    if labels.state == "partial":
        return Row(
            LABELS, "failed", f"Labels of {names} switch, with more than alignment can move."
        )
    if labels.state == "overlap":
        return Row(
            LABELS, "failed", f"Labels of {names} switch, and alignment cannot tell the parts."
        )
    if labels.state == "stay":
        one = one_labelling(labels.aligned.alignment) if labels.aligned is not None else None
        caveat = f" {one.sentence}" if one is not None else ""
        return Row(LABELS, "passed", f"All draws have one labelling of {names}.{caveat}")
    if raw.num_chains == 1:
        return Row(
            LABELS,
            "not judged",
            "No labels switch within the chain; that others would have the same cannot be seen.",
        )
    return Row(LABELS, "passed", "No labels are seen to switch.")


def _predictions_row(case: Case, answer: Answer) -> Row:
    facts, after, lp_rhat = case.before, case.after, case.before.lp_numbers[0]
    lp = "" if math.isnan(lp_rhat) else f"R-hat of `lp` {rhat(lp_rhat)}"
    apart = (
        _apart(case.heights)
        if case.heights and case.heights.unlike and answer == "unusable"
        else ""
    )
    if facts.lp_is_bad:
        return Row(PREDICTIONS, "failed", f"Log densities do not agree: {lp}{apart}.")
    if case.labels.aligned is not None or case.labels.state in ("overlap", "partial"):
        worst = case.worst_invariant
        said = f"R-hat of what the symmetry leaves alone is at most {rhat(worst.value)}"
        if math.isnan(worst.value):
            return Row(
                PREDICTIONS,
                "not judged",
                "Neither `lp` nor other quantities without labels are there.",
            )
        if worst.value > facts.rhat_limit:
            return Row(PREDICTIONS, "failed", f"{said} (`{worst.parameter}`){apart}.")
        good = answer != "unusable"
        return Row(PREDICTIONS, "passed" if good else "failed", f"{said}{apart}.")
    if answer == "unusable":
        return Row(
            PREDICTIONS,
            "failed",
            f"Parameters are not reliable, nor is what is computed of them{apart}.",
        )
    if case.labels.state == "none":
        return _unlabelled_row(case, lp)
    if not lp:
        return Row(
            PREDICTIONS,
            "not judged",
            "`lp` was not recorded, so that heights could not be compared.",
        )
    return Row(
        PREDICTIONS,
        "passed",
        f"Log densities agree ({lp}), and all entries once sorted (R-hat {rhat(after.worst_rhat.value)}).",
    )


def _unlabelled_row(case: Case, lp: str) -> Row:
    if case.before.raw.num_chains == 1:
        return Row(
            PREDICTIONS,
            "not judged",
            "One chain agrees with its halves; with others it could not be compared.",
        )
    worst = rhat(case.before.worst_rhat.value)
    return Row(
        PREDICTIONS,
        "passed",
        f"R-hat of all parameters is at most {worst}{', ' + lp if lp else ''}.",
    )


def _apart(found: Heights) -> str:
    gap, error = found.gap
    return f"; chain {found.lowest} lies {gap:.3g} ± {error:.1g} nats below chain {found.highest}"


def _sampler(raw: Diagnosis) -> Row:
    """What the sampler says of itself."""
    checks = [check for check in raw.checks if check.name in _SAMPLER_CHECKS]
    failures = [check for check in checks if check.outcome == "failed"]
    if failures:
        return Row(SAMPLER, "failed", " ".join(f"{c.fact}." for c in failures if c.fact))
    biased = next((c for c in checks if c.name == BIAS and c.outcome == "not judged"), None)
    if biased is not None:
        return Row(SAMPLER, "not judged", f"{biased.fact}: {biased.meaning}.")
    if missing := _missing(raw):
        return Row(SAMPLER, "not judged", f"{missing} could not be judged.")
    if not checks or raw.sampler is None:
        return Row(SAMPLER, "not judged", "Nothing was recorded of the sampler.")
    energy = f"; E-BFMI is at least {raw.sampler.min_bfmi:.2f}" if raw.sampler.bfmi else ""
    tree = ", no tree at its limit" if raw.outcome_of("tree depth") == "passed" else ""
    judged = raw.sampler.identities
    bias = f"; {bounds(judged)}" if judged is not None else ""
    return Row(SAMPLER, "passed", f"No divergences{tree}{energy}{bias}.")


def _missing(raw: Diagnosis) -> str:
    names = [
        c.name
        for c in raw.checks
        if c.outcome == "not judged"
        and c.name in (*_SAMPLER_CHECKS, "log density")
        and c.name != BIAS
    ]
    text = ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else "".join(names)
    return text[:1].upper() + text[1:] if text[:2] != "E-" else text
