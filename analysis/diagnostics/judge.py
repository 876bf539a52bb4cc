"""The verdict on Markov chains: the order in which causes decide, and the answer, rows, causes and remarks in words.

Labels come first, because a posterior may be sound once they are aligned. Other causes follow, the most likely first: a
funnel, too few draws, modes. The limits were tuned on simulated posteriors with known answers. The error rates are
measured in `benchmarks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from ..alignment.switching import one_labelling
from ..discovery.resolve import advice
from ..summaries.sampler import Heights, ModesSummary, modes_of
from .causes import (
    Funnel,
    Ridge,
    draw_more,
    find_funnel,
    funnel_cause,
    funnel_reason,
    have_settled,
    integers_cause,
    modes_cause,
    ridge_of,
    short_cause,
    times_as_many,
)
from .checks import BIAS, SAMPLER_CHECKS, blamed, bounds, check, is_gross, slightly_high
from .invariants import JudgedPoints, chosen_inputs
from .labels import (
    SORTED,
    UNSEEN,
    Labels,
    cannot_tell,
    labels_move,
    labels_remedy,
    overlap,
    stay,
    use_label_free,
)
from .measure import Facts, Measured
from .verdict import (
    LABELS,
    PREDICTIONS,
    SAMPLER,
    Answer,
    Extreme,
    Limits,
    Outcome,
    Reason,
    Verdict,
    capital,
    digits,
    in_rhat,
    listed,
    worst_of,
)

MEANS, SPREADS = 0.1, 1.1
"""Components are equal if their means differ by less than `MEANS` sds and their sds by a factor below `SPREADS`."""
MOST_PARTS = 64
"""Maximum number of components of a variable that may be indexed by labels."""
_STOPPED = {
    "not-finite": "draws are not finite",
    "stuck": "a chain does not move",
    "copies": "chains are copies of one another",
    "resampled": "few draws are distinct",
    "weighted": "weights of the draws were not used",
}
_WEIGHTS = (
    "Take more `draws` (and `chains`) to reduce the error of bridge sampling, or sample more of the modes (`most`); "
    "until then use each mode separately (statistic `mode`)."
)


@dataclass(frozen=True, eq=False)
class Case:
    """A posterior with finite draws and moving chains, and the state of its labels."""

    before: Facts  # The draws as sampled.
    labels: Labels

    @property
    def after(self) -> Facts:
        """Facts after alignment."""
        return self.labels.facts

    @property
    def limits(self) -> Limits:
        """The limits of the diagnosis."""
        return self.before.raw.limits

    @cached_property
    def checks(self) -> dict[str, Reason]:
        """Checks of the unaligned draws, by name."""
        return {found.name: found for found in check(self.before.raw)}

    @cached_property
    def unmoved(self) -> Facts:
        """Facts on the parameters that no symmetry moves."""
        table = self.after.table
        return replace(self.after, table=table[~table["variable"].isin(self.labels.variables)])

    @cached_property
    def identified(self) -> Facts:
        """Facts on the parameters that must mix: all, but without overlapping components if others exist."""
        overlap = self.labels.state == "overlap" and len(self.unmoved.table)
        return self.unmoved if overlap else self.after

    @cached_property
    def ridge(self) -> Ridge | None:
        """A combination of slow parameters that is known far better than each of them, if there is one."""
        return ridge_of(self.identified)

    @cached_property
    def is_sound(self) -> bool:
        """Check whether chains agree after alignment and have enough effective draws."""
        bad = self.unmoved.bad if self.labels.state == "overlap" else self.after.bad
        if len(self.integers_apart):
            return False
        if self.labels.rotated and not self.invariants_agree:
            return False
        return bad.empty and not self.after.lp_is_bad

    @cached_property
    def integers_apart(self) -> pd.DataFrame:
        """Rows of integer parameters on which chains disagree although no labels switch."""
        rows = self.before.integers_apart
        return rows if self.labels.state in ("none", "stay") else rows[:0]

    @cached_property
    def is_sorted(self) -> bool:
        """Check whether chains agree on all moved parameters after alignment."""
        table = self.after.table
        moved = table[table["variable"].isin(self.labels.variables)]
        return not bool((moved["rhat"] > self.limits.deciding_rhat).any())

    @cached_property
    def funnel(self) -> Funnel | None:
        """The scale and vector with the strongest relation, if any."""
        values = {n: v for n, v in self.before.values.items() if n not in self.labels.near}
        return find_funnel(values, self.before.diverging)

    @property
    def heights(self) -> Heights | None:
        """Mean log densities of the chains; None if there are fewer than two to compare."""
        return self.before.raw.heights

    @cached_property
    def modes(self) -> ModesSummary | None:
        """Modes that were sampled separately and combined; None for other posteriors."""
        return modes_of(self.before.view)

    @property
    def keeps_heights(self) -> bool:
        """Check whether the log density agrees between chains. If not, they are in different modes."""
        apart = self.before.lp_numbers[0] > self.limits.deciding_rhat
        return not apart and not (self.heights is not None and self.heights.unlike)

    @cached_property
    def blames_labels(self) -> bool:
        """Check whether the first cause is labels that cannot be aligned, and not chains in different modes."""
        partial = self.labels.state == "partial" and self.keeps_heights
        return partial and not (
            self.labels.doubtful and have_settled(self.identified, self.heights)
        )

    @property
    def is_open(self) -> bool:
        """Check whether chains disagree, in which case labels may switch unnoticed."""
        apart = len(self.integers_apart) > 0 or not self.identified.chains_agree
        return self.answer == "unusable" and apart

    @cached_property
    def invariants_agree(self) -> bool:
        """Check whether label-free quantities agree between chains."""
        if self.after.lp_is_bad or not self.unmoved.bad.empty:
            return False
        table = self.labels.invariants.drop(index="lp", errors="ignore")
        low, limit = self.before.raw.min_ess, self.limits.deciding_rhat
        bad = (table["rhat"] > limit) | (table["ess_bulk"] < low)
        return bool(len(table)) and not bool(bad.any())

    @cached_property
    def points(self) -> JudgedPoints | None:
        """A network's predictions at training inputs; None for one chain or without stored inputs."""
        view, raw = self.before.view, self.before.raw
        if view.network is None or view.x is None or raw.num_chains < 2:
            return None
        rows = chosen_inputs(len(view.x))
        outputs = self.labels.invariants
        return JudgedPoints.of(outputs, rows, raw.limits, raw.num_chains)

    @cached_property
    def answer(self) -> Answer:
        """The answer to whether the posterior may be used."""
        state = self.labels.state
        if state == "partial":
            return "unusable"
        if self.is_sound and not self.causes and (state != "overlap" or self.invariants_agree):
            answers: dict[str, Answer] = {"switch": "aligned", "overlap": "invariant"}
            return answers.get(state, "usable")
        doubt = self.sampler_fails or (self.modes and self.modes.doubt)
        apart = state == "overlap" or (state == "switch" and not self.is_sorted)
        if apart and self.invariants_agree and not doubt:
            return "invariant"
        # A network may predict well at all but a few points, which are then named.
        sound = not self.after.lp_is_bad and self.unmoved.bad.empty and self.keeps_heights
        few = sound and self.points is not None and self.points.few
        return "partly" if apart and few and not doubt else "unusable"

    @cached_property
    def causes(self) -> tuple[Reason, ...]:
        """Causes why the posterior is unsound even after alignment, the most likely first."""
        doubt = self.modes.doubt if self.modes else ""
        weights = (Reason("weights", "failed", doubt, remedy=_WEIGHTS),) if doubt else ()
        if self.is_sound or self.blames_labels:
            return (*weights, *self.sampler_fails)
        if len(self.integers_apart):
            return (integers_cause(self.before),)
        if self.answer == "partly" and self.points is not None:
            return (self.points.cause,)
        if weights:
            return weights
        if self.funnel and (cause := funnel_cause(self.before, self.funnel, self.ridge)):
            return (cause,)
        if self.sampler_fails:
            return self.sampler_fails[:1]
        if not self.identified.chains_agree and have_settled(self.identified, self.heights):
            return (modes_cause(self.identified, self.heights),)
        return (short_cause(self.identified, self.ridge),)

    @cached_property
    def sampler_fails(self) -> tuple[Reason, ...]:
        """Causes that forbid use although chains agree: biased steps or too many divergences."""
        sampler, bias = self.before.raw.sampler, self.checks.get(BIAS)
        if sampler is not None and bias is not None and bias.fact and is_gross(sampler):
            return (replace(bias, name="step-size"),)
        diverging = self.before.diverging
        if diverging is None or not diverging.any():
            return ()
        if self.funnel is not None and self.funnel.diverges_often:
            return (funnel_reason(self.before, self.funnel),)
        if sampler is None or self.limits.outcome("diverging", diverging.mean()) != "failed":
            return ()
        return (self.checks["divergences"],)


def of_stopped(facts: Facts, *causes: Reason) -> Verdict:
    """Return the verdict on draws that are not finite or hardly distinct, and on stuck or copied chains."""
    first, last = causes[0], causes[-1]
    broken = last.name in ("not-finite", "weighted")
    rows = (
        Reason(LABELS, "not judged", f"Not judged: {_STOPPED[last.name]}"),
        replace(first, name=PREDICTIONS),
        _sampler(facts.raw, check(facts.raw), causes) if broken else replace(last, name=SAMPLER),
    )
    return Verdict("unusable", (_do_not_use(first),), rows, causes)


def of_chains(case: Case) -> Verdict:
    """Return the verdict on Markov chains with finite draws that move."""
    labels, answer, raw = case.labels, case.answer, case.before.raw
    slow = tuple(_slow_invariants(case)) if answer != "invariant" else ()
    switched = (_labels_cause(labels, case),) if labels.state in ("switch", "overlap") else ()
    causes = switched if answer in ("aligned", "invariant") else (*case.causes, *switched, *slow)
    if labels.state == "partial" and case.keeps_heights:
        found = _labels_cause(labels, case)
        causes = (found, *case.causes) if case.blames_labels else (*case.causes, found)
    headline = list(_headline(case, answer, causes))
    if case.modes is not None:
        headline.append(Reason("modes", "not judged", case.modes.sentence))
    own = _sampler(raw, tuple(case.checks.values()), causes)
    rows = (_labels_row(labels, raw, case), _predictions_row(case, answer), own)
    words = labels.words if answer != "unusable" or case.keeps_heights else ()
    more = [*_alike_parts(case.before)] if answer == "usable" and labels.state == "none" else []
    if answer == "unusable" and raw.method == "mclmc" and case.before.view.network:
        fact = (
            "The chains may still predict well as an ensemble over modes: `ob.networks.score_predictions` scores "
            "them, and `ob.networks.summarise_predictions` shows where they agree"
        )
        more.append(Reason("network", "not judged", fact))
    if case.points and answer != "partly":
        more.append(case.points.reason(used=answer != "unusable"))
    if case.modes is not None and case.modes.remark:
        more.append(Reason("modes", "not judged", case.modes.remark))
    return Verdict(answer, tuple(headline), rows, causes, words, tuple(more))


def _do_not_use(cause: Reason, besides: str = "") -> Reason:
    return Reason("answer", "failed", f"Do not use it. {cause.evidence}{besides}")


def _headline(case: Case, answer: Answer, causes: tuple[Reason, ...]) -> Iterator[Reason]:
    labels, raw = case.labels, case.before.raw
    if answer == "unusable":
        switches = labels.state == "switch" and case.keeps_heights
        besides = f" In addition, labels of {listed(labels.variables)} switch" if switches else ""
        yield _do_not_use(causes[0], besides)
        return
    if answer == "usable":
        yield from _usable(case)
    elif answer == "aligned":
        yield Reason("answer", "passed", _aligned(case))
    elif answer == "partly" and case.points is not None:
        good, bad = case.points.good_in_words, case.points.bad_in_words
        fact = f"You may use predictions at {good}, but not individual weights. Do not use predictions at {bad}"
        yield Reason("answer", "warned", fact)
    else:
        yield Reason("answer", "warned", use_label_free(overlap(labels)))
    for found in case.checks.values():
        if found.name in SAMPLER_CHECKS and found.outcome in ("failed", "warned"):
            yield found
    if BIAS in case.checks and case.checks[BIAS].outcome == "not judged":
        known = bounds(raw.sampler)
        may = "may have a bias" if known else "have a bias"
        fact = f"Its draws {may} from the step size, which agreement between chains cannot reveal"
        yield Reason(BIAS, "not judged", f"{fact}: {known}" if known else fact)


def _aligned(case: Case) -> str:
    labels, limits = case.labels, case.before.raw.numbers.limits_of("rhat")
    before, after = case.before.worst_rhat.value, case.after.worst_rhat.value
    falls = f"R-hat falls from {in_rhat(before, limits)} to {in_rhat(after, limits)}"
    names = listed(labels.variables)
    if labels.rotated:
        return (
            f"{names} rotate, but label-free quantities agree between chains, so prefer "
            f"these. You may also use means aligned to simple structure (varimax); {falls}"
        )
    move = "moves" if len(labels.variables) == 1 else "move"
    move += " together" if len(labels.variables) > 1 and len(labels.symmetry) == 1 else ""
    declare = f" (declare {listed(labels.words)})" if labels.words else ""
    moved = f"{'at least ' if labels.found else ''}{names} {move}{declare}"
    if before > case.limits.deciding_rhat:
        who = "Chains agree" if case.before.raw.num_chains > 1 else "The chain's halves agree"
        return f"{who} once labels are aligned: {moved}. Use aligned means; {falls}"
    return (
        f"Every R-hat is good, yet labels switch all the time: {moved}, so the mean of one component averages over "
        "all components. Use aligned means"
    )


def _usable(case: Case) -> Iterator[Reason]:
    facts, raw = case.before, case.before.raw
    worst, least, limits = facts.worst_rhat, facts.least_ess, raw.limits
    if math.isnan(worst.value) and math.isnan(least.value):
        yield Reason("answer", "not judged", "There is nothing to judge: no parameter varies")
        return
    rhat = in_rhat(worst.value, raw.numbers.limits_of("rhat"))
    ess = f"at least {least.value:,.0f} effective draws"
    fact = f"You may use it: R-hat is at most {rhat}, and there are {ess}"
    if raw.num_chains == 1:
        fact = (
            f"You may use it as far as one chain can tell: its halves agree (R-hat at most {rhat}) and there are "
            f"{ess}, but it cannot reveal modes that it did not visit"
        )
    yield Reason("answer", limits.outcome("rhat", worst.value), fact)
    if above := int((facts.table["rhat"] > limits.rhat).sum()):
        many = f"{limits.rhat:g} for {above} of {len(facts.table)} parameters"
        yield slightly_high("warned", f"{many} (worst {rhat}, `{worst.parameter}`)")
    tail = Extreme.of(raw.parameters["ess_tail"].reindex(facts.table.index), smallest=True)
    if limits.outcome("ess_tail", tail.value, raw.num_chains) == "warned":
        own = f"`{tail.parameter}` has a tail ESS of {digits(tail.value, (raw.min_ess,))}"
        yield Reason("tail ESS", "warned", f"Its tail quantiles are imprecise: {own}")
    if case.labels.state == "stay":
        fact = "All chains have one labelling of the declared symmetry"
        yield Reason("labels", "passed", fact)
    if raw.num_chains > 1 and (missing := _missing(case.checks.values())):
        fact = f"{capital(missing)} could not be judged, because it was not recorded"
        yield Reason("sampler", "not judged", fact)


def _slow_invariants(case: Case) -> Iterator[Reason]:
    """Name the slowest label-free quantity if only such quantities are usable but lack effective draws."""
    table, raw = case.labels.invariants, case.before.raw
    if case.labels.state != "overlap" or case.causes or case.invariants_agree or table.empty:
        return
    least, rhat = Extreme.of(table["ess_bulk"], smallest=True), Extreme.of(table["rhat"]).value
    if least.value < raw.min_ess:
        times = times_as_many(least.value, raw.min_ess, rhat, raw.limits.deciding_rhat)
        fact = f"`{least.parameter}` has {least.value:.0f} effective draws of {raw.total_draws}"
        yield Reason("short", "failed", fact, remedy=draw_more(times))


def _labels_cause(labels: Labels, case: Case) -> Reason:
    if labels.state == "partial":
        fact = f"{labels_move(labels)}. {labels.reason} Moving only some of these parameters would change the posterior"
        remedy = (
            f"{advice(labels.facts.view)} If the other quantities do not belong to the components, the chains disagree "
            "about them. Then sample longer, or from other starting points."
        )
        return Reason("labels", "failed", f"{fact}, so nothing was aligned", remedy=remedy)
    before, after, shown = case.before.worst_rhat.value, case.after.worst_rhat.value, ""
    if before > case.limits.deciding_rhat and not (labels.turning or labels.near):
        limits = case.before.raw.numbers.limits_of("rhat")
        came = f"R-hat {in_rhat(before, limits)} as sampled"
        shown = f": {came}, {in_rhat(after, limits)} with labels aligned"
    elif labels.found:
        kept = f"{labels.found[0].gain.beside_noise:.2f} of what it would leave in pure noise"
        shown = f" at every draw: alignment leaves {kept}"
    remedy = labels_remedy(labels, case.answer, heights=case.keeps_heights, sorts=case.is_sorted)
    outcome: Outcome = "failed" if case.answer == "unusable" else "warned"
    return Reason("labels", outcome, f"{labels_move(labels)}{shown}", remedy=remedy)


def _labels_row(labels: Labels, raw: Measured, case: Case) -> Reason:
    if not labels.looked:
        return Reason(LABELS, "not judged", "Labels were not checked")
    state, names = labels.state, listed(labels.variables)
    if not labels.rotated and state == "none":  # Rotations are reported below.
        if raw.num_chains == 1:
            fact = "No labels switch within the chain, but other chains might have other labels"
            return Reason(LABELS, "not judged", fact)
        if not case.is_open:
            return Reason(LABELS, "passed", UNSEEN)
        close = "components that are close, or separate scalar parameters, may still switch"
        return Reason(LABELS, "not judged", f"{UNSEEN}; while chains disagree, {close}")
    if not labels.rotated and state == "stay":
        one = one_labelling(labels.aligned.alignment) if labels.aligned is not None else None
        return Reason(LABELS, "passed", stay(labels, one.sentence if one is not None else ""))
    outcome: Outcome = "failed" if case.answer == "unusable" else "warned"
    apart = "alignment does not bring the chains together"
    sorts = case.answer != "invariant" and case.is_sorted
    if state in ("switch", "partial") and not case.keeps_heights:
        differ = f"Chains differ in the labels of {names}, and in their log densities"
        return Reason(LABELS, outcome, f"{differ}, which labels do not explain")
    if labels.unclear_pair:
        fact = cannot_tell(labels)
    elif labels.near:
        fact = f"Labels of {names} switch, and alignment would change the posterior"
    elif labels.rotated:
        how = "; varimax and matching align them" if sorts else f", and {apart}"
        fact = f"The components of {names} rotate{how}"
    elif state == "switch":
        fact = SORTED if sorts else f"Labels of {names} switch, and {apart}"
    elif state == "partial":
        fact = f"Labels of {names} switch, together with parameters that alignment cannot move"
    elif labels.turning:
        fact = f"The components of {listed(labels.turning)} turn into one another, so no labelling sorts them"
    else:
        fact = cannot_tell(labels)
    return Reason(LABELS, outcome, fact)


def _predictions_row(case: Case, answer: Answer) -> Reason:
    facts, raw, heights = case.before, case.before.raw, case.heights
    if answer == "partly" and case.points is not None:
        return case.points.reason(PREDICTIONS)
    (lp, lp_ess), limits = facts.lp_numbers, raw.numbers.limits_of("rhat")
    unlike = heights is not None and heights.unlike
    apart = f"; {heights.apart()}" if heights and unlike and answer == "unusable" else ""
    alike = heights is not None and not unlike
    if facts.lp_is_bad and not (alike and len(case.identified.bad_rhat)):
        fact = f"The log density is poorly estimated: `lp` has only {lp_ess:.0f} effective draws"
        if lp > case.limits.deciding_rhat:
            fact = f"Log densities do not agree: R-hat of `lp` {in_rhat(lp, limits)}"
        return Reason(PREDICTIONS, "failed", f"{fact}{apart}")
    if case.labels.aligned is not None or case.labels.state in ("overlap", "partial"):
        # Invariants, and parameters that do not move.
        free = pd.concat([case.labels.invariants["rhat"], case.unmoved.table["rhat"]])
        worst = Extreme.of(free)
        if math.isnan(worst.value):
            fact = "Neither `lp` nor any other label-free quantity is available"
            return Reason(PREDICTIONS, "not judged", fact)
        rhat = in_rhat(worst.value, limits)
        if worst.value > case.limits.deciding_rhat:
            fact = f"Label-free quantities disagree between chains (R-hat up to {rhat}, `{worst.parameter}`)"
            return Reason(PREDICTIONS, "failed", f"{fact}{apart}")
        fact = f"Label-free quantities agree between chains (R-hat at most {rhat})"
        if answer == "unusable":
            until = "but are not reliable until the cause below is removed"
            return Reason(PREDICTIONS, "failed", f"{fact}, {until}{apart}")
        own = raw.limits.outcome("rhat", worst.value)
        return Reason(PREDICTIONS, own, f"{fact}{apart}")
    if answer == "unusable":
        fact = "Parameters, and anything computed from them, are not reliable"
        return Reason(PREDICTIONS, "failed", f"{fact}{apart}")
    if raw.num_chains == 1:
        fact = "The two halves of the chain agree, but there is no second chain for comparison"
        return Reason(PREDICTIONS, "not judged", fact)
    density = (
        "" if math.isnan(lp) else f" and the log density (R-hat of `lp` {in_rhat(lp, limits)})"
    )
    own = raw.limits.outcome("rhat", facts.worst_rhat.value)
    return Reason(PREDICTIONS, own, f"Chains agree on all parameters{density}")


def _sampler(raw: Measured, every: tuple[Reason, ...], causes: tuple[Reason, ...]) -> Reason:
    """Judge the statistics recorded by the sampler."""
    checks = blamed(tuple(c for c in every if c.name in SAMPLER_CHECKS), causes)
    if found := [c for c in checks if c.outcome in ("failed", "warned")]:
        text = " ".join(f"{c.fact}." for c in found)
        return Reason(SAMPLER, worst_of(c.outcome for c in found), text)
    for biased in (c for c in checks if c.name == BIAS and c.outcome == "not judged"):
        return replace(biased, name=SAMPLER)
    if missing := _missing(every):
        return Reason(SAMPLER, "not judged", f"{capital(missing)} could not be judged")
    if not checks or raw.sampler is None:
        return Reason(SAMPLER, "not judged", "No statistics of the sampler were recorded")
    sound = ["No divergences"]
    if any(c.name == "tree depth" and c.outcome == "passed" for c in checks):
        sound[0] += ", no tree at its limit"
    if raw.sampler.bfmi:
        bfmi = digits(raw.sampler.min_bfmi, (raw.limits.bfmi,), 2)
        sound.append(f"E-BFMI is at least {bfmi}")
    return Reason(SAMPLER, "passed", "; ".join(filter(None, [*sound, bounds(raw.sampler)])))


def _missing(checks: Iterable[Reason]) -> str:
    """Name the checks of the sampler that could not be judged."""
    known = {*SAMPLER_CHECKS, "log density"} - {BIAS}
    names = [c.name for c in checks if c.outcome == "not judged" and c.name in known]
    return listed(names, len(names), code=False)


def _alike_parts(facts: Facts) -> Iterator[Reason]:
    """Report vectors whose entries all have the same posterior."""
    for name, drawn in facts.values.items():
        if drawn.ndim == 3 and 2 <= drawn.shape[2] <= MOST_PARTS:
            rows = facts.raw.parameters.reindex(list(facts.names[name]))
            mean, sd = rows["mean"].to_numpy(), rows["sd"].to_numpy()
            known = np.isfinite(mean).all() and sd.min() > 0
            if known and np.ptp(mean) < MEANS * sd.min() and sd.max() < SPREADS * sd.min():
                fact = (
                    f"`{name}[0..{drawn.shape[2] - 1}]` have the same posterior: if they are components of a mixture, "
                    "their means say nothing about any single component"
                )
                yield Reason("labels", "not judged", fact)
