"""The order in which causes decide about Markov chains whose draws are finite and move.

Labels come first, modulo which the posterior may be sound; then what keeps it from being sound, most likely cause
first: a funnel, too few draws, modes. The limits were set on simulated posteriors whose answers are known; `benchmarks`
measures what they come to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from ..summaries.modes import ModesSummary, modes_of
from ..summaries.sampler import Heights
from .causes import (
    Funnel,
    Ridge,
    find_funnel,
    funnel_cause,
    funnel_reason,
    have_settled,
    integers_cause,
    modes_cause,
    ridge_of,
    short_cause,
)
from .checks import BIAS, is_gross
from .invariants import JudgedPoints, chosen_inputs
from .labels import Labels
from .measure import Facts
from .verdict import Answer, Extreme, Limits, Reason

_WEIGHTS = (
    "Take more `draws` (and `chains`), which make the error of bridge sampling smaller, or sample more of the modes "
    "(`most`); until then use each mode by itself, by the statistic `mode`."
)


@dataclass(frozen=True, eq=False)
class Case:
    """A posterior whose draws are finite and move, with what is known of its labels."""

    before: Facts  # as its draws came
    labels: Labels
    given: JudgedPoints | None = None  # a network's predictions at inputs of a user

    @property
    def after(self) -> Facts:
        """The posterior modulo its symmetry."""
        return self.labels.facts

    @property
    def limits(self) -> Limits:
        """The limits that numbers are judged by."""
        return self.before.raw.limits

    @cached_property
    def unmoved(self) -> Facts:
        """The parameters that no symmetry moves, which are judged like any other parameter."""
        table = self.after.table
        return replace(self.after, table=table[~table["variable"].isin(self.labels.variables)])

    @cached_property
    def identified(self) -> Facts:
        """Facts on what has to be sampled well: entries that no alignment finds need not be, if there are others."""
        overlap = self.labels.state == "overlap" and len(self.unmoved.table)
        return self.unmoved if overlap else self.after

    @cached_property
    def ridge(self) -> Ridge | None:
        """The combination of slow parameters that is known far better than each of them, if there is one."""
        return ridge_of(self.identified)

    @cached_property
    def is_sound(self) -> bool:
        """Tell whether chains agree, modulo labels, with enough effective draws."""
        bad = self.unmoved.bad if self.labels.state == "overlap" else self.after.bad
        if len(self.integers_apart):
            return False
        if self.labels.rotated and not self.invariants_agree:
            return False
        return bad.empty and not self.after.lp_is_bad

    @cached_property
    def integers_apart(self) -> pd.DataFrame:
        """Single integers about which chains disagree though no label switches."""
        rows = self.before.integers_apart
        return rows if self.labels.state in ("none", "stay") else rows[:0]

    @cached_property
    def is_sorted(self) -> bool:
        """Tell whether alignment brings the chains together in all that moves."""
        table = self.after.table
        moved = table[table["variable"].isin(self.labels.variables)]
        return not bool((moved["rhat"] > self.limits.deciding_rhat).any())

    @cached_property
    def worst_invariant(self) -> Extreme:
        """The largest R-hat of label-free quantities: invariants, and parameters that do not move."""
        return Extreme.of(pd.concat([self.labels.invariants["rhat"], self.unmoved.table["rhat"]]))

    @cached_property
    def funnel(self) -> Funnel | None:
        """The pair of scale and vector that goes together most closely."""
        values = {n: v for n, v in self.before.values.items() if n not in self.labels.near}
        return find_funnel(values, self.before.diverging)

    @property
    def heights(self) -> Heights | None:
        """Chains' mean log densities; None where there is nothing to compare."""
        return self.before.raw.heights

    @cached_property
    def modes(self) -> ModesSummary | None:
        """The modes that it was put together from; None where it was not."""
        return modes_of(self.before.view)

    @property
    def keeps_heights(self) -> bool:
        """Tell whether the log density agrees between chains, whatever their labels: else they are no equal modes."""
        apart = self.before.lp_numbers[0] > self.limits.deciding_rhat
        return not apart and not (self.heights is not None and self.heights.unlike)

    @cached_property
    def blames_labels(self) -> bool:
        """Tell whether labels that cannot be aligned come first: not where settled chains alone show them."""
        partial = self.labels.state == "partial" and self.keeps_heights
        return partial and not (
            self.labels.doubtful and have_settled(self.identified, self.heights)
        )

    @property
    def is_open(self) -> bool:
        """Tell whether chains disagree, so that labels that were not found may switch all the same."""
        apart = len(self.integers_apart) > 0 or not self.identified.chains_agree
        return self.answer == "unusable" and apart

    @cached_property
    def invariants_agree(self) -> bool:
        """Tell whether label-free quantities, besides the log density, agree between chains."""
        if self.after.lp_is_bad or not self.unmoved.bad.empty:
            return False
        table = self.labels.invariants.drop(index="lp", errors="ignore")
        low, limit = self.before.raw.min_ess, self.limits.deciding_rhat
        bad = (table["rhat"] > limit) | (table["ess_bulk"] < low)
        return bool(len(table)) and not bool(bad.any())

    @cached_property
    def points(self) -> JudgedPoints | None:
        """A network's predictions at training inputs; None of one chain, and where no inputs are kept."""
        view, raw = self.before.view, self.before.raw
        if view.network is None or view.x is None or raw.num_chains < 2:
            return None
        rows = chosen_inputs(len(view.x))
        outputs = self.labels.invariants
        return JudgedPoints.of(outputs, rows, raw.limits, raw.num_chains, training=True)

    @cached_property
    def few_points_disagree(self) -> bool:
        """Tell whether all label-free quantities are sound but a network's predictions at a few points."""
        sound = not self.after.lp_is_bad and self.unmoved.bad.empty and self.keeps_heights
        return sound and self.points is not None and self.points.few

    @cached_property
    def answer(self) -> Answer:
        """The answer."""
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
        return "partly" if apart and self.few_points_disagree and not doubt else "unusable"

    @cached_property
    def causes(self) -> tuple[Reason, ...]:
        """Causes that keep it from being sound modulo labels, most likely first; none where it is."""
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
        """Causes that forbid use though chains agree: biasing steps; many divergences, or at small scales."""
        sampler, raw = self.before.raw.sampler, self.before.raw
        bias = next((check for check in raw.checks if check.name == BIAS), None)
        if sampler is not None and bias is not None and bias.fact and is_gross(sampler):
            return (replace(bias, name="step-size"),)
        diverging = self.before.diverging
        if diverging is None or not diverging.any():
            return ()
        if self.funnel is not None and self.funnel.diverges_often:
            return (funnel_reason(self.before, self.funnel),)
        if sampler is None or self.limits.outcome("diverging", diverging.mean()) != "failed":
            return ()
        return tuple(check for check in raw.checks if check.name == "divergences")
