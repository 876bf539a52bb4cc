"""The verdict on a posterior, raw and modulo a symmetry: what `diagnose` and `diagnose_aligned` return.

Convention: chains and indices count from 0. A quantity that was not recorded or does not apply is
None or NaN; in JSON every number that is not finite becomes null.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from onebasin.base.card import Card, Part, Shown, Words
from onebasin.base.text import json_safe
from onebasin.posteriors.draws import variable_of

from ..alignment.switching import one_labelling
from ..discovery.resolve import resolve
from ..summaries.sampler import SamplerSummary
from ..summaries.variational import VariationalSummary
from .checks import besides, blamed, check, notes, remarks
from .measured import ROWS, Measured
from .verdict import Extreme, Outcome, Reason, Verdict, card_of, in_words, said_once, worst_of

if TYPE_CHECKING:
    from ..alignment import Alignment, Switching
    from .invariants import JudgedPoints

_OF_RUN = ("target", "engine", "method", "num_chains", "num_draws")
_OF_SAMPLER = (
    *("divergences", "divergence_share", "mean_tree_depth", "deepest_tree"),
    *("reached_max_treedepth", "min_bfmi", "acceptance_rate", "lp_rhat"),
)


APART = 1.2
"""R-hat above which chains are taken to disagree."""
NATS = 20.0
"""Difference of chains' mean log densities that makes the lower mode negligible."""
SHRINKS = 0.9
"""Aligned over raw standard deviation below which alignment is said to shrink the spread."""
TOLD_APART = 4.0
"""Standard deviations between components above which hardly a draw is given to the wrong one."""
LIKE_NOISE = 0.95
"""Ratio of the gain on draws to the gain on shuffled draws above which the two are the same."""


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Measured, Shown):
    """Everything that the diagnostics say about one posterior.

    Attributes
    ----------
    target, engine, method : str
        What was sampled and how, from the tree's attributes; empty if it does not say.
    num_chains, num_draws : int
        Chains, and draws in each of them.
    parameters : DataFrame
        One row per scalar parameter, named as ``mu[0]``: mean, sd, quantiles, MCSE, R-hat and ESS.
    rhat, ess_bulk, ess_tail : Extreme
        The worst values: largest R-hat, smallest ESS, each with its `value` and the `parameter` that has it.
    constants : tuple of str
        Parameters that never vary, which have no R-hat and no ESS.
    undefined : tuple of str
        Entries that are finite in no draw, such as an unset triangle: they are left out.
    broken : mapping of str to int
        Parameters that are finite in some draws and not in others, with the number of draws that are not.
    heavy_tails : mapping of str to tuple of float
        Parameters whose tails are too heavy for a mean or an sd: k-hat of the distance from the mean and its square.
    kinds : Kinds
        Which variables are parameters, transformed parameters and generated quantities.
    sampler : SamplerSummary or None
        What the Markov chain sampler recorded; None for a variational fit.
    variational : VariationalSummary or None
        How good the approximation is; None for a Markov chain.
    ess_per_second, ess_per_gradient : float
        Smallest bulk ESS over the seconds of sampling, summed over chains; over the gradients of the kept draws.
    wall_time : float
        Time of the whole call, in seconds.
    symmetric : bool
        Whether the target declares interchangeable parts, hence equal modes.
    limits : Limits
        The limits that the warnings compare the numbers with.
    symmetry_caveat : str
        What nobody has checked of the declared symmetry, as a sentence; empty if nothing is left.
    has_chains : bool
        Whether the draws are Markov chains: no variational fit, and no ensemble.
    angles : tuple of str
        Parameters that are angles whose draws lie across the cut of their circle: mean and sd are circular.
    recurring : Recurring or None
        Draws that recur in any order, as resampled ones do: how many are distinct, and what they are worth; else None.
    density_heights : Heights or None
        Of chains whose `lp` differs: mean log densities of the parameters, without the Jacobian of bounds; or None.
    deciding : tuple of str
        Variables that the answer rests on.
    left_out : mapping of str to tuple of str
        Those that are not used for it, by reason: ``generated``, ``transformed``, ``integer``.
    answered : Verdict or None
        The answer without what it leaves open, which `judgement` adds; None where only numbers were asked for.
    aligned : AlignedDiagnosis or None
        The diagnosis modulo the symmetry that is declared or was found; None if there is none.
    points : JudgedPoints or None
        A network's predictions by point, with a `table`; None of other posteriors, and of one chain.
    """

    answered: Verdict | None = None  # without what it leaves open
    aligned: AlignedDiagnosis | None = None
    points: JudgedPoints | None = None

    @cached_property
    def checks(self) -> tuple[Reason, ...]:
        """Every check that applies, and whether it passed, warned, failed or could not be judged."""
        return blamed(check(self), self.answered.causes if self.answered else ())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what does not apply here or could not be judged, and why."""
        return said_once(notes(self, self.checks))

    @cached_property
    def judgement(self) -> Verdict | None:
        """The answer to whether the posterior may be used, and why; None where only numbers were asked for."""
        if self.answered is None:
            return None
        open_ = (*remarks(self, self.checks, self.answered), *self.answered.remarks)
        return replace(self.answered, remarks=open_, besides=tuple(besides(self)))

    @property
    def is_shown_aligned(self) -> bool:
        """Check whether the answer rests on aligned draws of the parameters that the symmetry moves."""
        return self.aligned is not None and self.verdict == "aligned"

    @cached_property
    def shown(self) -> pd.DataFrame:
        """The table `parameters`, with aligned rows where the answer rests on aligned draws."""
        if self.aligned is None or not self.is_shown_aligned:
            return self.parameters
        table = self.parameters.copy()
        for aligned in (self.aligned.aligned.parameters, self.aligned.numbered):
            rows = aligned.index.intersection(table.index)
            table.loc[rows, aligned.columns] = aligned.loc[rows]
        return table

    @property
    def verdict(self) -> str | None:
        """The answer, as `Verdict` has it; None where only numbers were asked for."""
        return self.answered.answer if self.answered else None

    @property
    def causes(self) -> tuple[str, ...]:
        """Causes that keep it from being usable as it is, most likely first."""
        return tuple(cause.name for cause in self.answered.causes) if self.answered else ()

    @property
    def exchangeable(self) -> tuple[str, ...]:
        """Texts to declare with ``--exchangeable``, one a block."""
        return self.answered.exchangeable if self.answered else ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what is wrong or to be looked at, and what to do next."""
        return said_once(c for c in self.checks if c.outcome in ("failed", "warned"))

    @property
    def outcome(self) -> Outcome:
        """Failed or warned if a check is, passed only if every check was judged and passed, else not judged."""
        return worst_of(check.outcome for check in self.checks)

    @property
    def passed(self) -> bool:
        """Check whether every check was judged and passed."""
        return self.outcome == "passed"

    @property
    def checks_in_words(self) -> str:
        """The checks' outcomes, in one line."""
        return in_words(self.checks)

    def outcome_of(self, name: str) -> Outcome | None:
        """Return the outcome of one check.

        Parameters
        ----------
        name : str
            The check, as `checks` calls it: ``R-hat``, ``divergences``, ``E-BFMI``, ...

        Returns
        -------
        str or None
            ``passed``, ``warned``, ``failed`` or ``not judged``; None if it does not apply.
        """
        return next((check.outcome for check in self.checks if check.name == name), None)

    def card(self, *, whole: bool = False) -> Card:
        """Show the answer, then one table of what may be used: aligned parameters, or label-free quantities alone.

        Parameters
        ----------
        whole : bool
            Whether the table has all rows, however many.

        Returns
        -------
        Card
            The answer, its rows, what to do, the table.
        """
        rows = self.shown.drop(index=[*self.constants, *self.broken])
        caption = "aligned parameters" if self.is_shown_aligned else "parameters"
        if self.aligned is not None and (self.verdict == "invariant" or "points" in self.causes):
            moved, caption = self.aligned.aligned.parameters.index, "label-free quantities"
            rows = pd.concat([rows.drop(index=moved, errors="ignore"), self.aligned.invariants])
            rows = rows[~rows.index.duplicated()]
        many = f"{self.num_chains} chains of " if self.num_chains > 1 else ""
        caption += f": {many}{self.num_draws} draws"
        table: tuple[Part, ...]
        table = self.numbers.in_order(rows, caption, None if whole else ROWS)
        table += (self.points.as_table(self.verdict, whole=True),) if whole and self.points else ()
        return card_of(self.judgement, self.checks, table)

    def _card(self) -> Card:
        return self.card()

    def summary(self) -> dict[str, Any]:
        """Return the headline numbers as one flat mapping, NaN and None kept as they are."""
        worst = ("rhat", "ess_bulk", "ess_tail")
        sides = {f"{w}_{side}": v for w in worst for side, v in vars(getattr(self, w)).items()}
        sampler, fit = self.sampler or SamplerSummary(), self.variational or VariationalSummary()
        return {
            **{name: getattr(self, name) for name in _OF_RUN},
            "num_parameters": len(self.parameters),
            **sides,
            **{name: getattr(sampler, name) for name in _OF_SAMPLER},
            "khat": fit.khat,
            "elbo": fit.elbo,
            "gradient_evaluations": (sampler if self.sampler else fit).gradient_evaluations,
            "sampling_seconds": sampler.sampling_seconds,
            "warmup_seconds": sampler.warmup_seconds,
            "wall_time": self.wall_time,
            "ess_per_second": self.ess_per_second,
            "ess_per_gradient": self.ess_per_gradient,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types that `json.dumps(..., allow_nan=False)` accepts."""
        table = self.parameters.to_dict("index").items()
        parts = {
            **(self.judgement.to_dict() if self.judgement else {}),
            "summary": self.summary(),
            "sampler": asdict(self.sampler) if self.sampler else None,
            "variational": asdict(self.variational) if self.variational else None,
            "limits": asdict(self.limits),
            "constants": self.constants,
            "undefined": self.undefined,
            "broken": dict(self.broken),
            "kinds": {"of": dict(self.kinds.of), "guessed": self.kinds.guessed},
            "outcome": self.outcome,
            "checks_in_words": self.checks_in_words,
            "checks": [
                c.to_dict("name", "outcome", "fact", "remedy", "sentences") for c in self.checks
            ],
            "warnings": self.warnings,
            "notes": self.notes,
            "parameters": [{"parameter": name, **row} for name, row in table],
        } | ({"aligned": self.aligned.to_dict()} if self.aligned else {})
        parts |= {"predictions": self.points.to_dict()} if self.points else {}
        return json_safe(parts)


@dataclass(frozen=True, eq=False, repr=False)
class AlignedDiagnosis(Shown):
    """The diagnoses of a posterior before and after its draws are brought into one labelling.

    Attributes
    ----------
    raw, aligned : Diagnosis
        The diagnostics before and after alignment; `aligned` looks at the moved variables.
    alignment : Alignment
        Elements, reference and rule.
    invariants : DataFrame
        One row per quantity that the symmetry leaves alone, with the columns of a table of parameters.
    switching : Switching
        How often labels changed within the chains, and whether alignment found more than noise has.
    basins : tuple of tuple of int
        Groups of chains that agree after alignment, as tuples of chain numbers.
    chain_lp : tuple of float
        Mean log density of each chain, in nats; empty where `lp` was not recorded.
    shrinkage : float
        Median over moved parameters of aligned over raw standard deviation.
    held_out_rhat : Extreme or None
        Worst R-hat of chains that had no part in the reference; None if it was not asked for.
    numbered : DataFrame
        Integers that number components, by the numbers of the new places.
    caveat : str
        What nobody has checked of the symmetry, as a sentence; empty if nothing is left.
    """

    raw: Diagnosis
    aligned: Diagnosis
    alignment: Alignment
    invariants: pd.DataFrame
    switching: Switching
    basins: tuple[tuple[int, ...], ...]
    chain_lp: tuple[float, ...]
    shrinkage: float
    held_out_rhat: Extreme | None = None
    numbered: pd.DataFrame = field(default_factory=pd.DataFrame)
    caveat: str = ""

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The events of the alignment, in words."""
        return tuple(_events(self))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Cautions, in words."""
        return tuple(_cautions(self))

    @property
    def invariant_rhat(self) -> Extreme:
        """The largest R-hat of label-free quantities."""
        return Extreme.of(self.invariants["rhat"])

    def _card(self) -> Card:
        show = self.raw.numbers.in_order
        moved = show(self.aligned.parameters, "aligned parameters")
        fixed = show(self.invariants, "left alone by the symmetry") if len(self.invariants) else ()
        warned = (Words(sentence, flag="warn") for sentence in self.warnings)
        return Card("Modulo its symmetry", (*map(Words, self.sentences), *warned, *moved, *fixed))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the raw diagnosis as plain types for JSON."""
        rows = [{"quantity": name, **row} for name, row in self.invariants.to_dict("index").items()]
        return json_safe(
            {
                "rule": self.alignment.text,
                "converged": self.alignment.converged,
                "diagnosis": self.aligned.to_dict(),
                "invariants": rows,
                "switching": self.switching.to_dict(),
                "basins": self.basins,
                "chain_lp": self.chain_lp,
                "shrinkage": self.shrinkage,
                "held_out_rhat": self.held_out_rhat and vars(self.held_out_rhat),
                "caveat": self.caveat,
                "sentences": self.sentences,
                "warnings": self.warnings,
            }
        )


def _events(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    yield diagnosis.alignment.text
    labellings = diagnosis.switching.labellings
    if diagnosis.alignment.rotates:
        yield "Every draw had a rotation of its own."
    elif max(labellings, default=1) == 1:
        yield "Labels never changed within a chain."
        if (one := one_labelling(diagnosis.alignment)) is not None and not one.improbable:
            yield one.sentence
    else:
        counts = f"{min(labellings)} to {max(labellings)} labellings a chain"
        yield f"Labels changed within chains: {counts}."
    density = diagnosis.alignment.density
    if density is not None and density.compared:
        yield density.sentence
    else:
        status = resolve(diagnosis.alignment.source, diagnosis.alignment.symmetry).status
        yield from filter(None, (status, density.sentence if density else ""))
    judged = [e for e in diagnosis.aligned.parameters.index if diagnosis.raw.decides(e)]
    raw, aligned = (
        Extreme.of(each.parameters["rhat"].reindex(judged)) if judged else each.rhat
        for each in (diagnosis.raw, diagnosis.aligned)
    )
    fixed = diagnosis.invariant_rhat
    if math.isnan(raw.value) or math.isnan(aligned.value):
        why = " ".join(diagnosis.raw.notes[:1]) or "no parameter that was moved varies."
        yield f"R-hat cannot be compared before and after: {why}"
        return
    held_out = f", {diagnosis.held_out_rhat.value:.3f} held out" if diagnosis.held_out_rhat else ""
    free = f", {fixed.value:.3f} of label-free quantities" if fixed.parameter else ""
    yield f"Worst R-hat: {raw.value:.3f} raw, {aligned.value:.3f} aligned{held_out}{free}."


def _cautions(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    limit = diagnosis.raw.limits.rhat
    rotates = diagnosis.alignment.rotates
    if rotates:
        yield (
            "Varimax chose the rotation, not the data: loadings and scores are those of simple structure. Quantities "
            "that no rotation changes, such as L L' of loadings L, need no such choice."
        )
    if len(diagnosis.basins) > 1:
        groups = "; ".join(", ".join(map(str, group)) for group in diagnosis.basins)
        yield (
            f"{len(diagnosis.basins)} groups of chains stay apart after alignment ({groups}): modes that "
            "the symmetry does not join." + _heights(diagnosis)
        )
    elif _far(diagnosis):
        yield "The chains' log densities lie far apart." + _heights(diagnosis)
    one = one_labelling(diagnosis.alignment)
    if one is not None and one.improbable:
        yield one.sentence
    # Variables that no block moves, and whose chains disagree although those of the moved ones agree.
    rhat = diagnosis.raw.parameters["rhat"].drop(index=diagnosis.aligned.parameters.index)
    left: list[str] = []
    if diagnosis.aligned.rhat.value <= APART < diagnosis.raw.rhat.value:
        known, numbered = diagnosis.raw.kinds.of, diagnosis.alignment.allocations
        names = dict.fromkeys(variable_of(name, known) for name in rhat[rhat > APART].index)
        left = [name for name in names if name not in numbered]
    if left:
        differ, it = ("differs", "it") if len(left) == 1 else ("differ", "them")
        yield (
            f"{', '.join(left)} still {differ} between chains, and alignment did not move {it}. If indexed by "
            f"component, declare {it} with the components."
        )
    if not diagnosis.alignment.converged:
        yield (
            f"The alignment still moved components in its last of {diagnosis.alignment.sweeps} sweeps: give "
            "more with `max_sweeps`."
        )
    if diagnosis.raw.rhat.value <= limit and diagnosis.shrinkage < SHRINKS and not rotates:
        yield (
            f"R-hat is good without alignment ({diagnosis.raw.rhat.value:.3f}), which only shrinks the spread (to "
            f"{diagnosis.shrinkage:.2f} of the raw standard deviation): either every chain visits all labellings, or "
            "the components are equal without being modes. Use the raw draws for label-free quantities."
        )
    overlap = max(diagnosis.switching.labellings, default=1) > 1
    overlap &= not diagnosis.switching.distance > TOLD_APART
    noise = diagnosis.switching.noise_ratio
    if noise is not None and diagnosis.switching.ratio > LIKE_NOISE * noise:
        yield (
            f"Alignment brings the draws hardly closer than it brings {diagnosis.switching.yardstick} (to "
            f"{diagnosis.switching.ratio:.2f} and {noise:.2f} of their variance): this posterior does not look like "
            "one mode per labelling."
        )
    elif overlap:
        yield (
            "Components overlap, so aligned means and standard deviations depend on the alignment rule, which is "
            "stored with them; compare invariants where that matters."
        )


def _far(diagnosis: AlignedDiagnosis) -> bool:
    """Check whether the lower mode is negligible, and not for Monte Carlo errors alone."""
    heights = diagnosis.raw.heights
    return heights is not None and heights.unlike and heights.gap[0] > NATS


def _heights(diagnosis: AlignedDiagnosis) -> str:
    heights = diagnosis.raw.heights
    if heights is None:
        return ""
    means = ", ".join(f"{mean:.1f}" for mean in heights.means)
    if not heights.unlike:
        return f" Mean log density by chain: {means}, equal within Monte Carlo errors."
    negligible = " Chains far below the highest sit in negligible modes: start from an optimum."
    return f" Mean log density by chain: {means}." + negligible * _far(diagnosis)
