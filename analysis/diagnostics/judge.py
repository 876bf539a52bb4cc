"""From facts to a verdict on Markov chains: what is looked at, in which order, and what decides.

First what makes every number meaningless (draws that are not finite, chains that stand still); then labels, modulo
which the posterior may be sound; then what keeps it from being sound, most likely cause first: a funnel, too few draws,
modes. The limits were set on simulated posteriors whose answers are known; `benchmarks` measures what they come to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Float

from onebasin.posteriors.draws import variable_of

from ..summaries.deciding import rhat_of_entries
from ..summaries.modes import ModesSummary, modes_of
from . import describe as say
from .causes import (
    ALONE,
    LOOKED_AT,
    Funnel,
    Heights,
    Run,
    compare_heights,
    find_funnel,
    longest_run,
    narrow_chains,
    settled,
    times_as_many,
)
from .labels import Labels
from .measure import Facts
from .method_checks import is_gross, step_size_bias
from .verdict import Answer, Cause, Extreme

DIVERGES = 0.05
"""Share of draws that diverged from which on nothing that was drawn is trusted."""


def broken(facts: Facts) -> Cause | None:
    """Entries that are finite in some draws and not in others, or parameters that are finite in none."""
    entries = [entry for entries in facts.names.values() for entry in entries]
    name = next((entry for entry in entries if entry in facts.raw.broken), None)
    if name is not None:
        draws = facts.view.draws(variable_of(name, facts.names), finite=False)
        chain, draw = _first_broken(draws.of(name))
        return say.not_finite(name, chain, draw, sum(e in facts.raw.broken for e in entries))
    undefined = set(facts.raw.undefined)
    if entries and undefined.issuperset(entries):
        return say.never_finite(tuple(facts.names))
    sampler = facts.raw.sampler if facts.raw.has_chains else None
    counts = {} if sampler is None else sampler.not_finite
    for name in ("lp", "energy"):
        if name in counts and (stat := facts.view.stat(name)) is not None:
            return say.statistic_not_finite(
                name, *_first_broken(stat), sum(counts[name]), stat.size
            )
    return None


def _first_broken(values: Float[np.ndarray, "chain draw"]) -> tuple[int, int]:
    """Chain and draw of the first value that is not finite, by draw."""
    bad = ~np.isfinite(values)
    draw = int(bad.any(axis=0).argmax())
    return int(bad[:, draw].argmax()), draw


_BESIDE = 256
"""Entries whose repeats are counted at a time."""


def stuck(facts: Facts) -> Cause | None:
    """Chains that stand still."""
    entries = set(facts.table.index)
    worst: tuple[str, Run] | None = None
    for name, drawn in facts.values.items():
        free = np.array([entry in entries for entry in facts.names[name]], bool)
        flat = drawn.reshape(*drawn.shape[:2], -1)
        for first in range(0, flat.shape[2], _BESIDE):
            part = slice(first, first + _BESIDE)
            run = longest_run(flat[..., part], free[part])
            if run is not None and (worst is None or run.length > worst[1].length):
                worst = (name, run)
    if worst is not None:
        name, run = worst
        whole = Run(run.chain, run.first * facts.step, run.length * facts.step)
        return say.stuck_run(name, whole, facts.raw.num_draws)
    narrow = narrow_chains(facts.values)
    return say.stuck_narrow(narrow) if narrow else None


@dataclass(frozen=True, eq=False)
class Case:
    """A posterior whose draws are finite and move, with what is known of its labels."""

    before: Facts
    labels: Labels

    @property
    def after(self) -> Facts:
        """The posterior modulo its symmetry."""
        return self.labels.facts

    @cached_property
    def unmoved(self) -> Facts:
        """The parameters that no symmetry moves, which are judged like any other parameter."""
        table = self.after.table
        return replace(self.after, table=table[~table["variable"].isin(self.labels.variables)])

    @cached_property
    def identified(self) -> Facts:
        """What has to be sampled well: entries that no alignment finds need not be, if there are others."""
        overlap = self.labels.state == "overlap" and len(self.unmoved.table)
        return self.unmoved if overlap else self.after

    @cached_property
    def is_sound(self) -> bool:
        """Whether chains agree, modulo labels, with enough effective draws."""
        bad = self.unmoved.bad if self.labels.state == "overlap" else self.after.bad
        return bad.empty and not self.after.lp_is_bad

    @cached_property
    def is_sorted(self) -> bool:
        """Whether alignment brings the chains together in all that moves."""
        table = self.after.table
        moved = table[table["variable"].isin(self.labels.variables)]
        return not bool((moved["rhat"] > self.after.rhat_limit).any())

    @cached_property
    def worst_invariant(self) -> Extreme:
        """The largest R-hat of what the symmetry leaves alone: invariants, and parameters that do not move."""
        return Extreme.of(pd.concat([self.labels.invariants["rhat"], self.unmoved.table["rhat"]]))

    @cached_property
    def funnel(self) -> Funnel | None:
        """The pair of scale and vector that goes together most closely."""
        return find_funnel(self.before.values, self.before.diverging)

    @cached_property
    def heights(self) -> Heights | None:
        """Chains' mean log densities; None where there is nothing to compare."""
        sampler = self.before.raw.sampler
        if sampler is None or len(sampler.lp_errors) < 2:
            return None
        return compare_heights(sampler.lp_means, sampler.lp_errors)

    @cached_property
    def modes(self) -> ModesSummary | None:
        """The modes that it was put together from; None where it was not."""
        return modes_of(self.before.view)

    @cached_property
    def invariants_agree(self) -> bool:
        """Whether what the symmetry leaves alone, beside the log density, agrees between chains."""
        if self.after.lp_is_bad or not self.unmoved.bad.empty:
            return False
        table = self.labels.invariants.drop(index="lp", errors="ignore")
        low, limit = self.before.raw.min_ess, self.before.rhat_limit
        return bool(len(table)) and not bool(
            ((table["rhat"] > limit) | (table["ess_bulk"] < low)).any()
        )

    @cached_property
    def answer(self) -> Answer:
        """The answer."""
        state = self.labels.state
        if state == "partial":
            return "unusable"
        if self.is_sound and not self.causes and (state != "overlap" or self.invariants_agree):
            return {
                "none": "usable",
                "stay": "usable",
                "switch": "aligned",
                "overlap": "invariant",
            }[state]  # type: ignore[return-value]
        if (
            self.labels.state in ("switch", "overlap")
            and self.invariants_agree
            and not self._sampler_fails
            and not (self.modes and self.modes.doubt)
        ):
            return "invariant"
        return "unusable"

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """What keeps it from being sound modulo labels, most likely first; nothing where it is."""
        weights = (say.weights(self.modes),) if self.modes and self.modes.doubt else ()
        if self.labels.state == "partial":
            return (*weights, *self._sampler_fails)
        if self.is_sound:
            return (*weights, *self._sampler_fails)
        return weights or (self._why(),)

    @cached_property
    def _sampler_fails(self) -> tuple[Cause, ...]:
        """What forbids use although chains agree: steps that bias the draws; divergences, many or at small scales."""
        sampler = self.before.raw.sampler
        if sampler is not None and is_gross(sampler) and (check := step_size_bias(sampler)):
            return (say.biased_steps(check),)
        diverging = self.before.diverging
        if diverging is None or not diverging.any():
            return ()
        if self.funnel is not None and self.funnel.diverges_often:
            return (say.funnel(self.funnel, self.before.raw, facts=self.before),)
        if diverging.mean() > DIVERGES:
            return (say.divergences(self.before.raw),)
        return ()

    @property
    def funnel_cause(self) -> Cause | None:
        """The funnel, where it is what keeps chains from agreeing."""
        if self.funnel is None or not self._is_cause(self.funnel):
            return None
        return say.funnel(self.funnel, self.before.raw, facts=self.before)

    def _why(self) -> Cause:
        after = self.identified
        if (cause := self.funnel_cause) is not None:
            return cause
        if self._sampler_fails:
            return self._sampler_fails[0]
        agree = after.bad_rhat.empty and not after.lp_numbers[0] > after.rhat_limit
        if not agree and self._settled():
            return say.modes(after, self.heights)
        return say.short(after, self._times(), agree)

    def _is_cause(self, funnel: Funnel) -> bool:
        sampler, low = self.before.raw.sampler, self.before.raw.min_ess
        ess = self.before.table["ess_bulk"].get(funnel.scale, np.inf)
        if self.before.diverging is None and not (sampler and sampler.bfmi):
            return funnel.correlation > ALONE and bool(ess < low)
        energies = bool(
            sampler and np.nanmin(sampler.bfmi or (np.inf,)) < self.before.raw.limits.bfmi
        )
        return funnel.diverges or energies or (funnel.divergences > 0 and bool(ess < low))

    def _settled(self) -> bool:
        """Whether chains have settled, each in a mode of its own."""
        if self.after.raw.num_chains < 2 or self.after.raw.num_draws < say.FEW:
            return False
        worst = self.identified.bad_rhat.sort_values("rhat", ascending=False).index[:LOOKED_AT]
        if not len(worst):
            return bool(self.heights and self.heights.unlike)
        values = self.after.columns(tuple(worst))
        halves = np.stack([rhat_of_entries(chain[None]) for chain in values])
        alone, if_unlike = settled(values, halves)
        return alone or bool(if_unlike and self.heights and self.heights.unlike)

    def _times(self) -> int:
        after = self.identified
        rhat = max(after.worst_rhat.value, np.nan_to_num(after.lp_numbers[0], nan=1.0))
        ess = np.nanmin([after.least_ess.value, after.lp_numbers[1], np.inf])
        return times_as_many(float(ess), after.raw.min_ess, float(rhat), after.rhat_limit)
