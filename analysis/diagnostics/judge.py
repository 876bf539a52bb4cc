"""From facts to a verdict: what is looked at, in which order, and what decides.

First what makes every number meaningless (draws that are not finite, chains that stand still); then labels, modulo
which the posterior may be sound; then what keeps it from being sound, most likely cause first: a funnel, too few draws,
modes. The limits were set on simulated posteriors whose answers are known; `benchmarks` measures what they come to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from onebasin.posteriors.draws import variable_of

from ..summaries.common_draws import draw_keys, overlapping
from ..summaries.deciding import rhat_of_entries
from ..summaries.modes import ModesSummary, modes_of
from .causes import (
    ALONE,
    LOOKED_AT,
    EqualRun,
    Funnel,
    Heights,
    find_funnel,
    longest_run,
    narrow_chains,
    settled,
    times_as_many,
)
from .checks import BIAS, is_gross
from .invariants import chosen_inputs
from .labels import Labels
from .measure import Facts
from .points import JudgedPoints
from .ridges import Ridge, ridge_of
from .verdict import Answer, Extreme, Limits, Reason

ENOUGH = 100
"""Draws of a chain to ask for where there are too few."""


def not_finite(facts: Facts) -> Reason | None:
    """Find entries that are finite in some draws and not in others, or parameters that are finite in none."""
    entries = [entry for entries in facts.names.values() for entry in entries]
    name = next((entry for entry in entries if entry in facts.raw.broken), None)
    if name is not None:
        draws = facts.view.draws(variable_of(name, facts.names), finite=False)
        others = sum(entry in facts.raw.broken for entry in entries) - 1
        numbers = {"name": name} | _first_broken(draws.of(name))
        return _cause(
            "not-finite", "entry not finite", **numbers, **({"others": others} if others else {})
        )
    if entries and set(facts.raw.undefined).issuperset(entries):
        return _cause("not-finite", "never finite", names=tuple(facts.names))
    sampler = facts.raw.sampler if facts.raw.has_chains else None
    counts = {} if sampler is None else sampler.not_finite
    for name, what in (("lp", "The log density `lp`"), ("energy", "`energy`")):
        if name in counts and (stat := facts.view.stat(name)) is not None:
            numbers = {"what": what, "bad": sum(counts[name]), "draws": stat.size}
            return _cause("not-finite", "lp not finite", **numbers, **_first_broken(stat))
    return None


def unread_weights(facts: Facts) -> Reason | None:
    """Find weights of draws under a name by which they are not used."""
    name = facts.view.unread_weights
    return _cause("weighted", "unread weights", name=name) if name else None


def _cause(cause: str, kind: str, /, **numbers: Any) -> Reason:
    return Reason(cause, "failed", kind, numbers)


def _first_broken(values: Float[np.ndarray, "chain draw"]) -> dict[str, int]:
    """Chain and draw of the first value that is not finite, by draw."""
    bad = ~np.isfinite(values)
    draw = int(bad.any(axis=0).argmax())
    return {"chain": int(bad[:, draw].argmax()), "draw": draw}


_AT_A_TIME = 256
"""Entries whose repeats are counted at a time."""


def stuck(facts: Facts) -> Reason | None:
    """Find draws that are few ones again and again, chains that stand still, or that are another chain once more."""
    entries = set(facts.table.index)
    if facts.raw.kinds.named("parameter") and not entries:
        return _cause("stuck", "all constant", names=tuple(facts.names))
    recur = facts.raw.recurring
    if recur is not None and recur.worth < facts.raw.min_ess:
        told = {"draws": facts.raw.total_draws, "distinct": recur.distinct}
        return _cause("resampled", "few distinct", **told, worth=recur.worth)
    moved = facts.moved_steps
    worst: tuple[str, EqualRun] | None = None
    for name, drawn in facts.values.items():
        free = np.array([entry in entries for entry in facts.names[name]], bool)
        flat = drawn.reshape(*drawn.shape[:2], -1)
        for first in range(0, flat.shape[2], _AT_A_TIME):
            part = slice(first, first + _AT_A_TIME)
            run = longest_run(flat[..., part], free[part], moved)
            if run is not None and (worst is None or run.length > worst[1].length):
                worst = (name, run)
    draws = facts.raw.num_draws
    if worst is not None:
        name, run = worst
        length, first = run.length * facts.step, run.first * facts.step
        if length >= 0.99 * draws:
            return _cause("stuck", "chain never moves", name=name, chain=run.chain)
        place = {"chain": run.chain, "first": first, "length": length, "draws": draws}
        return _cause("stuck", "chain repeats", name=name, **place)
    keys = draw_keys(facts.values.values())
    if (found := overlapping(keys)) is not None:
        one, other, common = found
        if np.array_equal(keys[one], keys[other]):
            return _cause("copies", "chains equal", chains=(one, other))
        numbers = {"chains": (one, other), "common": common * facts.step, "draws": draws}
        return _cause("copies", "chains overlap", **numbers)
    narrow = narrow_chains(facts.values)
    if not narrow:
        return None
    chains = sorted(set(narrow.values()))
    verb = "moves" if len(chains) == 1 else "move"
    return _cause("stuck", "chains narrow", chains=chains, verb=verb, names=tuple(narrow))


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
        return partial and not (self.labels.doubtful and self._settled())

    @property
    def is_open(self) -> bool:
        """Tell whether chains disagree, so that labels that were not found may switch all the same."""
        apart = len(self.integers_apart) > 0 or not self._chains_agree
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
        weights = (_cause("weights", "weights", fact=doubt),) if doubt else ()
        if self.is_sound or self.blames_labels:
            return (*weights, *self.sampler_fails)
        if len(rows := self.integers_apart):
            worst = Extreme.of(rows["rhat"])
            numbers = {"names": tuple(rows.index), "rhat": worst.value}
            return (_cause("modes", "integers apart", **numbers),)
        if self.answer == "partly" and self.points is not None:
            return (self.points.cause,)
        if weights:
            return weights
        if (cause := self.funnel_cause) is not None:
            return (cause,)
        if self.sampler_fails:
            return self.sampler_fails[:1]
        agree = self._chains_agree
        return (self._modes() if not agree and self._settled() else self._short(agree),)

    @cached_property
    def sampler_fails(self) -> tuple[Reason, ...]:
        """Causes that forbid use though chains agree: biasing steps; many divergences, or at small scales."""
        sampler, raw = self.before.raw.sampler, self.before.raw
        bias = next((check for check in raw.checks if check.name == BIAS), None)
        if sampler is not None and bias is not None and bias.kind and is_gross(sampler):
            return (replace(bias, name="step-size"),)
        diverging = self.before.diverging
        if diverging is None or not diverging.any():
            return ()
        if self.funnel is not None and self.funnel.diverges_often:
            return (self._funnel(self.funnel),)
        if sampler is None or self.limits.outcome("diverging", diverging.mean()) != "failed":
            return ()
        return tuple(check for check in raw.checks if check.name == "divergences")

    @property
    def funnel_cause(self) -> Reason | None:
        """The funnel, where it is what keeps chains from agreeing."""
        if self.funnel is None or not self._is_cause(self.funnel):
            return None
        return self._funnel(self.funnel)

    def _funnel(self, found: Funnel) -> Reason:
        raw = self.before.raw
        numbers: dict[str, Any] = {
            "scale": found.scale,
            "vector": found.vector,
            "side": "large" if found.large else "small",
            "correlation": found.correlation,
        }
        if found.divergences:
            numbers |= {"there": found.there, "divergences": found.divergences}
        if raw.sampler is not None and raw.sampler.min_bfmi < self.limits.bfmi:
            numbers |= {"bfmi": raw.sampler.min_bfmi, "limits": (self.limits.bfmi,)}
        if (ess := self.before.table["ess_bulk"].get(found.scale, math.inf)) < raw.min_ess:
            numbers["ess"] = ess
        return _cause("funnel", "funnel", **numbers)

    @property
    def _chains_agree(self) -> bool:
        after = self.identified
        return after.bad_rhat.empty and not after.lp_numbers[0] > self.limits.deciding_rhat

    def _modes(self) -> Reason:
        bad, found = self.identified.bad_rhat, self.heights
        numbers: dict[str, Any] = {"settled": "chains have settled"}
        if len(bad):
            rhat, name = self._worst
            numbers = {"rhat": rhat, "name": name, "bad": len(bad)}
            numbers["limits"] = self.before.raw.numbers.limits_of("rhat")
            numbers["entries"] = len(self.identified.table)
        if found is not None and found.unlike:
            numbers |= found.apart
        elif found is not None:
            numbers["heights"] = "equal"
        return _cause("modes", "modes", **numbers)

    @property
    def _worst(self) -> tuple[float, str]:
        """The largest R-hat of what is identified and of the log density, with its name."""
        worst, lp = self.identified.worst_rhat, self.identified.lp_numbers[0]
        if lp > worst.value or math.isnan(worst.value):
            return lp, "lp"
        return worst.value, str(worst.parameter)

    def _short(self, agree: bool) -> Reason:
        """Too few effective draws, or chains that disagree with their own halves."""
        after, raw = self.identified, self.before.raw
        if raw.num_draws < Limits.FEW:
            return _cause("short", "too few", draws=raw.num_draws, enough=ENOUGH)
        least, lp_ess = after.least_ess, after.lp_numbers[1]
        of_lp = lp_ess < least.value or math.isnan(least.value)
        ess, name = (lp_ess, "lp") if of_lp else (least.value, str(least.parameter))
        rhat = float(max(after.worst_rhat.value, np.nan_to_num(after.lp_numbers[0], nan=1.0)))
        limit = self.limits.deciding_rhat
        times = times_as_many(float(np.nanmin([ess, np.inf])), raw.min_ess, rhat, limit)
        numbers: dict[str, Any] = {"name": name, "ess": ess, "draws": raw.total_draws}
        numbers["limits"] = raw.numbers.limits_of("rhat")
        if not agree:
            numbers["rhat"], numbers["worst"] = self._worst
        elif ess < raw.min_ess:
            numbers["needed"] = raw.min_ess
        own = vars(self.ridge) if self.ridge else {}
        return _cause("short", "ridge" if own else "short", times=times, **numbers, **own)

    def _is_cause(self, funnel: Funnel) -> bool:
        sampler, low = self.before.raw.sampler, self.before.raw.min_ess
        if self.ridge and self.ridge.holds(funnel.scale, funnel.vector):
            return False  # no scale of the vector, but a factor of each of its entries
        ess = self.before.table["ess_bulk"].get(funnel.scale, np.inf)
        if self.before.diverging is None and not (sampler and sampler.bfmi):
            return funnel.correlation > ALONE and bool(ess < low)
        energies = bool(sampler and np.nanmin(sampler.bfmi or (np.inf,)) < self.limits.bfmi)
        return funnel.diverges or energies or (funnel.divergences > 0 and bool(ess < low))

    def _settled(self) -> bool:
        """Tell whether chains have settled, each in its own mode."""
        if self.after.raw.num_chains < 2 or self.after.raw.num_draws < Limits.FEW:
            return False
        worst = self.identified.bad_rhat.sort_values("rhat", ascending=False).index[:LOOKED_AT]
        if not len(worst):
            return bool(self.heights and self.heights.unlike)
        values = self.after.columns(tuple(worst))
        halves = np.stack([rhat_of_entries(chain[None]) for chain in values])
        alone, if_unlike = settled(values, halves)
        return alone or bool(if_unlike and self.heights and self.heights.unlike)
