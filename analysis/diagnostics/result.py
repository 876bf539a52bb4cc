"""The verdict on a posterior, raw and modulo a symmetry: what `diagnose` and `diagnose_aligned` return.

Convention: chains and indices count from 0. A quantity that was not recorded or does not apply is
None or NaN; in JSON every number that is not finite becomes null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from onebasin.base.card import Card, Part, Shown, Words, in_brief
from onebasin.base.jsonable import json_safe
from onebasin.base.table import Table, TableCell, Value, decimals_beside, format_number
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.view import Kinds

from ..summaries.judged_draws import Recurring
from ..summaries.sampler import NAN, Heights, SamplerSummary, compare_heights
from ..summaries.variational import VariationalSummary
from .verdict import (
    FLAGS,
    Extreme,
    Limits,
    Outcome,
    Reason,
    Verdict,
    card_of,
    in_words,
    said_once,
    worst_of,
)

if TYPE_CHECKING:
    from ..alignment import Alignment, Switching
    from .invariants import JudgedPoints

_OF_RUN = ("target", "engine", "method", "num_chains", "num_draws")
_OF_SAMPLER = (
    *("divergences", "divergence_share", "mean_tree_depth", "deepest_tree"),
    *("reached_max_treedepth", "min_bfmi", "acceptance_rate", "lp_rhat"),
)


DECIMALS = {"rhat": 3, "ess_bulk": 0, "ess_tail": 0}
"""Decimals of the columns of a table that are judged."""
COLUMNS = {
    "mean": "mean",
    "sd": "sd",
    "q5": "5 %",
    "median": "median",
    "q95": "95 %",
    "mcse_mean": "MCSE",
    "mcse_sd": "of sd",
    "rhat": "R-hat",
    "ess_bulk": "bulk ESS",
    "ess_tail": "tail ESS",
}
"""Headings of a table of parameters."""
ROWS = 40
"""Rows of a table, at most."""
_ORDER = ("parameter", "transformed", "generated")


@dataclass(frozen=True, eq=False)
class Numbers:
    """A table of parameters whose numbers are judged."""

    table: pd.DataFrame  # a row a parameter, with `rhat`, `ess_bulk` and `ess_tail`
    limits: Limits
    chains: int
    deciding: frozenset[str]  # entries that the answer rests on; others are warned of at most
    others_decide: bool = False  # quantities that are not in the table, such as invariants
    kinds: Mapping[str, str] = field(default_factory=dict)  # of variables

    @cached_property
    def decisive(self) -> pd.DataFrame:
        """Rows that the answer rests on."""
        return self.table[self.table.index.isin(self.deciding)]

    def outcome(self, column: str, value: float, entry: str) -> Outcome:
        """Judge one number of a quantity: its ``rhat``, ``ess_bulk`` or ``ess_tail``."""
        known = entry in self.table.index
        decides = entry in self.deciding if known else self.others_decide
        return self.limits.outcome(column, value, self.chains, decides=decides)

    def worst_outcome(self, column: str) -> Outcome:
        """Return the gravest outcome of a column."""
        rest = self.table.drop(index=self.decisive.index)
        found = (Extreme.of(t[column], smallest=column != "rhat") for t in (self.decisive, rest))
        return worst_of(
            self.outcome(column, worst.value, worst.parameter) for worst in found if worst.parameter
        )

    def limits_of(self, column: str) -> tuple[float, ...]:
        """Return the limits of a column; empty where its numbers are not judged."""
        if column == "rhat":
            return self.limits.rhat, self.limits.deciding_rhat
        return (self.limits.least_ess(self.chains),) if column in DECIMALS else ()

    def written(self, column: str, value: float) -> str:
        """Write a number, with as many digits as tell it from its limits."""
        if column not in DECIMALS or math.isnan(value):
            return format_number(value, digits=3)
        places = decimals_beside(value, self.limits_of(column), DECIMALS[column])
        return format_number(value, decimals=places)

    def in_order(
        self, table: pd.DataFrame, caption: str, most: int | None = ROWS
    ) -> tuple[Part, ...]:
        """Tabulate at most so many rows in the model's order, scalars first; a variable has all of its rows, or none.

        Numbers that do not pass are marked. Where rows are left out, words say how many, and the worst numbers of all.
        """
        variables: dict[str, list[str]] = {}
        for entry in table.index:
            variables.setdefault(variable_of(entry, self.kinds), []).append(entry)
        shown: list[str] = []
        left: list[str] = []
        kind = {name: _ORDER.index(self.kinds.get(name, "parameter")) for name in variables}
        for name in sorted(variables, key=lambda name: (kind[name], variables[name] != [name])):
            if most is None or len(shown) + len(variables[name]) <= most:
                shown += variables[name]
            else:
                left.append(name)
        if not shown and left:
            shown = variables[left[0]][:most]
        known = [column for column in COLUMNS if table[column].notna().any()]
        cells = tuple(
            (f"`{name}`", *(self._cell(column, row[column], name) for column in known))
            for name, row in table.loc[shown].to_dict("index").items()
        )
        found = Table(("", *(COLUMNS[column] for column in known)), cells, caption)
        return (found, self._rest(table, len(table) - len(shown), left)) if left else (found,)

    def _cell(self, column: str, value: float, entry: str) -> Value | TableCell:
        outcome = self.outcome(column, value, entry) if column in DECIMALS else "passed"
        marked = not math.isnan(value) and outcome != "passed"
        return TableCell(self.written(column, value), FLAGS[outcome] if marked else "")

    def _rest(self, table: pd.DataFrame, count: int, left: list[str]) -> Words:
        """Say how many rows are left out, and the worst numbers of all rows."""
        columns = {c: Extreme.of(table[c], smallest=c != "rhat") for c in DECIMALS}
        found = [(c, each.value, each.parameter) for c, each in columns.items() if each.parameter]
        worst = ", ".join(f"{COLUMNS[c]} {self.written(c, v)} (`{name}`)" for c, v, name in found)
        said = f" Worst of all {len(table)}: {worst}." if worst else ""
        outcome = worst_of(self.outcome(*each) for each in found)
        return Words(f"{count} more ({in_brief(left)}).{said}", flag=FLAGS[outcome])


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Shown):
    """Everything that the diagnostics say about one posterior.

    Attributes
    ----------
    target, engine, method : str
        What was sampled and how, from the tree's attributes; empty where it does not say.
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
        Of the whole call, in seconds.
    symmetric : bool
        Whether the target declares interchangeable parts, hence equal modes.
    limits : Limits
        The limits that the warnings compare the numbers with.
    symmetry_caveat : str
        What nobody has checked of the declared symmetry, in a sentence; empty where nothing is left.
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
    checks : tuple of Reason
        Every check that applies, with what came of it: passed, warned, failed or not judged.
    notes : tuple of str
        Sentences: what does not apply here or could not be judged, and why.
    judgement : Verdict or None
        Whether the posterior may be used, and why; None where only numbers were asked for.
    aligned : AlignedDiagnosis or None
        The diagnosis modulo the symmetry that is declared or was found; None where there is none.
    points : JudgedPoints or None
        A network's predictions by point, with a `table`; None of other posteriors, and of one chain.
    """

    target: str
    engine: str
    method: str
    num_chains: int
    num_draws: int
    parameters: pd.DataFrame
    rhat: Extreme = field(default_factory=Extreme)
    ess_bulk: Extreme = field(default_factory=Extreme)
    ess_tail: Extreme = field(default_factory=Extreme)
    constants: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    broken: Mapping[str, int] = field(default_factory=dict)
    heavy_tails: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    kinds: Kinds = field(default_factory=lambda: Kinds({}))
    sampler: SamplerSummary | None = None
    variational: VariationalSummary | None = None
    ess_per_second: float = NAN
    ess_per_gradient: float = NAN
    wall_time: float = NAN
    symmetric: bool = False
    symmetry_caveat: str = ""
    has_chains: bool = True
    angles: tuple[str, ...] = ()
    recurring: Recurring | None = None
    density_heights: Heights | None = None
    limits: Limits = field(default_factory=Limits)
    deciding: tuple[str, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checks: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    judgement: Verdict | None = None
    aligned: AlignedDiagnosis | None = None
    points: JudgedPoints | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that were looked at."""
        entries = (*self.parameters.index, *self.undefined)
        return tuple(dict.fromkeys(variable_of(entry, self.kinds.of) for entry in entries))

    @property
    def total_draws(self) -> int:
        """Draws of all chains."""
        return self.num_chains * self.num_draws

    @property
    def min_ess(self) -> float:
        """Smallest ESS that passes."""
        return self.limits.least_ess(self.num_chains)

    @property
    def is_shown_aligned(self) -> bool:
        """Tell whether the answer rests on aligned draws of the parameters that the symmetry moves."""
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

    def decides(self, entry: str) -> bool:
        """Tell whether the answer rests on an entry.

        Parameters
        ----------
        entry : str
            Such as ``mu[0]``.

        Returns
        -------
        bool
            Whether its variable is among those that decide.
        """
        return variable_of(entry, self.kinds.of) in self.deciding

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of `shown` with their outcomes, which everything that shows or judges them takes."""
        deciding = frozenset(filter(self.decides, self.shown.index))
        own = (self.shown, self.limits, self.num_chains, deciding)
        return Numbers(*own, self.verdict in ("invariant", "unusable"), self.kinds.of)

    @cached_property
    def heights(self) -> Heights | None:
        """Mean log densities of the chains; None where there are not two to compare."""
        sampler = self.sampler
        if self.density_heights or sampler is None or len(sampler.lp_errors) < 2:
            return self.density_heights
        return compare_heights(sampler.lp_means, sampler.lp_errors)

    @property
    def verdict(self) -> str | None:
        """The answer, as `Verdict` has it; None where only numbers were asked for."""
        return self.judgement.answer if self.judgement else None

    @property
    def causes(self) -> tuple[str, ...]:
        """Causes that keep it from being usable as it is, most likely first."""
        return tuple(cause.name for cause in self.judgement.causes) if self.judgement else ()

    @property
    def exchangeable(self) -> tuple[str, ...]:
        """Texts to declare with ``--exchangeable``, one a block."""
        return self.judgement.exchangeable if self.judgement else ()

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
        """Tell whether every check was judged and passed."""
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
            ``passed``, ``warned``, ``failed`` or ``not judged``; None where it does not apply.
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
        Worst R-hat of chains that had no part in the reference; None where it was not asked for.
    numbered : DataFrame
        Integers that number components, by the numbers of the new places.
    caveat : str
        What nobody has checked of the symmetry, in a sentence; empty where nothing is left.
    sentences, warnings : tuple of str
        What happened, and what to beware of, in words.
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
    sentences: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

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
