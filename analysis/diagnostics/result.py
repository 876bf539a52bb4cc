"""Results of `diagnose` and `diagnose_aligned`: the verdict on a posterior before and after alignment.

Chains and indices count from 0. A quantity that was not recorded or does not apply is None or NaN. In JSON, numbers
that are not finite become null.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from onebasin.base.card import (
    NARROW,
    Card,
    Fact,
    FactList,
    Part,
    Shown,
    Words,
    in_brief,
    page,
    table_lines,
)
from onebasin.base.table import MOST, Table, TableCell, format_number, with_minus
from onebasin.base.text import json_safe
from onebasin.posteriors.draws import variable_of

from ..alignment.switching import one_labelling
from ..discovery.resolve import resolve
from .checks import besides, blamed, check, remarks
from .measure import DECIMALS, Measured, Numbers
from .verdict import FLAGS, Extreme, Outcome, Reason, Verdict, worst_of

if TYPE_CHECKING:
    from ..alignment import Alignment, Switching
    from .invariants import JudgedPoints

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
"""Column headings of parameter tables."""
ROWS = 40
"""Maximum number of rows in a table."""
LEFT_OUT = ("of sd", "MCSE", "median", "tail ESS", "95 %", "5 %", "bulk ESS", "sd")
"""Columns to leave out, in this order, if lines are too long."""
_PLACES = ("mean", "q5", "median", "q95")
_ORDER = ("parameter", "transformed", "generated")
APART = 1.2
"""R-hat above which two chains disagree after alignment."""
NATS = 20.0
"""Difference between chains' mean log densities above which the lower mode is negligible."""
SHRINKS = 0.9
"""Ratio of aligned to raw standard deviation below which alignment shrinks the spread."""
TOLD_APART = 4.0
"""Distance between components, in standard deviations, above which hardly any draw gets the wrong component."""
LIKE_NOISE = 0.95
"""Ratio of the variance left in draws to that left in shuffled draws above which alignment only fits noise."""


def tabulated(
    numbers: Numbers, table: pd.DataFrame, caption: str, most: int | None = ROWS
) -> tuple[Table] | tuple[Table, Words]:
    """Tabulate at most `most` rows in the model's order, scalars first. Show all rows of a variable, or none.

    Mark numbers that do not pass. If rows are left out, add a sentence with their number and the worst values of all
    rows.
    """
    variables: dict[str, list[str]] = {}
    for entry in table.index:
        variables.setdefault(variable_of(entry, numbers.kinds), []).append(entry)
    shown: list[str] = []
    left: list[str] = []
    kind = {name: _ORDER.index(numbers.kinds.get(name, "parameter")) for name in variables}
    for name in sorted(variables, key=lambda name: (kind[name], variables[name] != [name])):
        if most is None or len(shown) + len(variables[name]) <= most:
            shown += variables[name]
        else:
            left.append(name)
    if not shown and left:
        shown = variables[left[0]][:most]
    known = [column for column in COLUMNS if table[column].notna().any()]
    rows = table[table.index.isin(shown)].to_dict("index")
    rhat_decimals = numbers.decimals("rhat", *(row["rhat"] for row in rows.values()))
    cells: tuple[tuple[str | TableCell, ...], ...] = tuple(
        (f"`{name}`", *(_cell(numbers, column, row, name, rhat_decimals) for column in known))
        for name, row in rows.items()
    )
    found = Table(("", *(COLUMNS[column] for column in known)), cells, caption)
    if not left:
        return (found,)
    columns = {c: Extreme.of(table[c], smallest=c != "rhat") for c in DECIMALS}
    extremes = [(c, each.value, each.parameter) for c, each in columns.items() if each.parameter]
    worst = ", ".join(f"{COLUMNS[c]} {numbers.written(c, v)} (`{n}`)" for c, v, n in extremes)
    said = f" Worst of all {len(table)}: {worst}." if worst else ""
    outcome = worst_of(numbers.outcome(*each) for each in extremes)
    more = f"{len(table) - len(shown)} more ({in_brief(left)}).{said}"
    return found, Words(more, flag=FLAGS[outcome])


def _cell(
    numbers: Numbers, column: str, row: Mapping[str, float], entry: str, rhat_decimals: int
) -> TableCell:
    value = row[column]
    if column in _PLACES:
        return TableCell(_as_precise(value, row["sd"], row["mcse_mean"]))
    if column not in DECIMALS:
        written = _as_precise(value, value, row["mcse_sd"]) if column == "sd" else ""
        return TableCell(written or format_number(value, digits=2))
    decimals = rhat_decimals if column == "rhat" else numbers.decimals(column, value)
    outcome = numbers.outcome(column, value, entry)
    marked = not math.isnan(value) and outcome != "passed"
    return TableCell(format_number(value, decimals=decimals), FLAGS[outcome] if marked else "")


def _as_precise(value: float, sd: float, error: float) -> str:
    """Write a number to two digits of its standard deviation, or one of its Monte Carlo error if that is finer."""
    if not 0 < sd < math.inf or not math.isfinite(value):
        return format_number(value, digits=6)
    decimals = 1 - math.floor(math.log10(sd))
    if 0 < error < math.inf:
        decimals = max(decimals, -math.floor(math.log10(error)))
    size = max(abs(value), sd)
    if 1e-4 <= size < 1e15:
        return with_minus(f"{value:,.{min(max(decimals, 0), MOST)}f}")
    digits = 1 + math.floor(math.log10(abs(value))) + decimals if value else 1
    return format_number(value, digits=max(digits, 1))


class ParameterTable(pd.DataFrame):
    """A table of parameters that prints like the table of `diagnose` and contains every row and digit."""

    _metadata: ClassVar = ["numbers"]

    def __init__(self, table: pd.DataFrame, numbers: Numbers) -> None:
        super().__init__(table)
        self.numbers = numbers

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __repr__(self) -> str:
        """Show the same rows as `diagnose`, if possible in lines of at most 80 characters."""
        if [*self.columns] != [*self.numbers.table.columns]:
            return super().__repr__()
        table, *rest = tabulated(self.numbers, self, "parameters")
        narrow = table
        for name in LEFT_OUT:
            if max(map(len, table_lines(narrow))) <= NARROW:
                break
            narrow = narrow.narrowed(
                [k for k, column in enumerate(narrow.headings) if column.name != name]
            )
        left = [c.name for c in table.headings if c not in narrow.headings]
        rest += [Words(f"Columns hidden to save width: {', '.join(left)}.")] if left else []
        return Card("", (narrow, *rest)).text().lstrip("\n")

    def _repr_html_(self) -> str:
        return page(Card("", tabulated(self.numbers, self, "parameters")))


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Measured, Shown):
    """The verdict on one posterior and the numbers behind it.

    Attributes
    ----------
    target, engine, method : str
        Target and sampler, from the attributes of the tree; empty if absent.
    num_chains, num_draws : int
        Number of chains and of draws per chain.
    parameters : DataFrame
        One row per scalar parameter, named as ``mu[0]``: mean, sd, quantiles, MCSE, R-hat and ESS.
    constants : tuple of str
        Parameters that never vary. They have no R-hat or ESS.
    undefined : tuple of str
        Entries that are never finite, such as an unset triangle. They are left out.
    broken : mapping of str to int
        Parameters that are finite in only some draws, with the number of draws that are not finite.
    heavy_tails : mapping of str to tuple of float
        Parameters with tails too heavy for a mean or an sd, with k-hat of the distance from the mean and of its square.
    kinds : Kinds
        Names of the parameters, transformed parameters and generated quantities.
    sampler : SamplerSummary or None
        Statistics of the Markov chain sampler; None for a variational fit.
    variational : VariationalSummary or None
        Quality of the approximation; None for a Markov chain.
    wall_time : float
        Time of the whole call, in seconds.
    symmetric : bool
        Whether the target declares interchangeable components, which cause equal modes.
    limits : Limits
        Limits of R-hat, ESS and E-BFMI.
    symmetry_caveat : str
        A sentence on the part of the declared symmetry that was not checked; empty if all was checked.
    has_chains : bool
        Whether the draws are Markov chains, and not a variational fit or an ensemble.
    angles : tuple of str
        Angles whose draws lie on both sides of the cut of their circle. Their mean and sd are circular.
    recurring : Recurring or None
        Number of distinct and of independent draws, if draws recur in any order, as after resampling.
    density_heights : Heights or None
        Mean log densities of the parameters, without the Jacobian of bounds, if the chains' `lp` differ.
    deciding : tuple of str
        Variables that are used for the verdict.
    left_out : mapping of str to tuple of str
        Variables that are not used for the verdict, by reason: ``generated``, ``transformed``, ``integer``.
    answered : Verdict
        The verdict without remarks, which `judgement` adds.
    aligned : AlignedDiagnosis or None
        The diagnosis after alignment by the declared or found symmetry; None without a symmetry.
    points : JudgedPoints or None
        A network's predictions by point, with a `table`; None for other posteriors and for a single chain.
    """

    answered: Verdict
    aligned: AlignedDiagnosis | None = None
    points: JudgedPoints | None = None

    @cached_property
    def checks(self) -> tuple[Reason, ...]:
        """Every check that applies, with its outcome (passed, warned, failed or not judged)."""
        return blamed(check(self), self.answered.causes)

    @cached_property
    def judgement(self) -> Verdict:
        """The answer to whether the posterior may be used, and why."""
        open_ = (*remarks(self, self.checks, self.answered), *self.answered.remarks)
        return replace(self.answered, remarks=open_, besides=tuple(besides(self)))

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of `shown` with their outcomes."""
        return replace(super().numbers, others_decide=self.verdict in ("invariant", "unusable"))

    @property
    def is_shown_aligned(self) -> bool:
        """Check whether the verdict and the tables use aligned draws."""
        return self.aligned is not None and self.verdict == "aligned"

    @cached_property
    def shown(self) -> pd.DataFrame:
        """The table `parameters`, with rows of aligned draws where the verdict uses these."""
        if self.aligned is None or not self.is_shown_aligned:
            return self.parameters
        table = self.parameters.copy()
        for aligned in (self.aligned.aligned.parameters, self.aligned.numbered):
            rows = aligned.index.intersection(table.index)
            table.loc[rows, aligned.columns] = aligned.loc[rows]
        return table

    @property
    def verdict(self) -> str:
        """The answer, which is ``usable``, ``aligned``, ``invariant``, ``partly`` or ``unusable``."""
        return self.answered.answer

    @property
    def causes(self) -> tuple[str, ...]:
        """Names of the causes why the posterior is not usable as it is, the most likely first."""
        return tuple(cause.name for cause in self.answered.causes)

    @property
    def exchangeable(self) -> tuple[str, ...]:
        """Declarations for ``--exchangeable``, one string per block."""
        return self.answered.exchangeable

    def outcome_of(self, name: str) -> Outcome | None:
        """Return the outcome of one check.

        Parameters
        ----------
        name : str
            A name in `checks`: ``R-hat``, ``divergences``, ``E-BFMI``, ...

        Returns
        -------
        str or None
            ``passed``, ``warned``, ``failed`` or ``not judged``; None if the check does not apply.
        """
        return next((check.outcome for check in self.checks if check.name == name), None)

    def card(self, *, whole: bool = False) -> Card:
        """Show the answer and one table: parameters (aligned if the verdict uses these) or label-free quantities.

        Parameters
        ----------
        whole : bool
            Whether the table has all rows.

        Returns
        -------
        Card
            The answer, its rows, the remedies and the table.
        """
        rows = self.shown.drop(index=[*self.constants, *self.broken])
        caption = "aligned parameters" if self.is_shown_aligned else "parameters"
        if self.aligned is not None and (self.verdict == "invariant" or "points" in self.causes):
            moved, caption = self.aligned.aligned.parameters.index, "label-free quantities"
            rows = pd.concat([rows.drop(index=moved, errors="ignore"), self.aligned.invariants])
            rows = rows[~rows.index.duplicated()]
        many = f"{self.num_chains} chains of " if self.num_chains > 1 else ""
        caption += f": {many}{self.num_draws} draws"
        table: list[Part] = [*tabulated(self.numbers, rows, caption, None if whole else ROWS)]
        table += [self.points.as_table(self.verdict, whole=True)] if whole and self.points else []
        said = self.judgement
        parts: list[Part] = [Words(said.in_short)]
        parts.append(FactList(tuple(Fact(row.name, row.sentence, row.flag) for row in said.rows)))
        lines: list[tuple[str, str]] = []
        for name, evidence, remedy in said.steps:
            lines.append(("why", f"{name}: {evidence}" if evidence else name))
            lines.append(("what to do", remedy))
        parts += [FactList.of(*lines)] if lines else []
        for remark in said.own_remarks:
            parts += [Words(sentence, flag=remark.flag) for sentence in remark.sentences]
        parts += [*table, *(Words(sentence, small=True) for sentence in said.left_out)]
        return Card(said.heading, tuple(parts), said.flag)

    def _card(self) -> Card:
        return self.card()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types that `json.dumps(..., allow_nan=False)` accepts."""
        own = ("name", "outcome", "fact", "remedy", "sentences")
        parts = {
            **self.judgement.to_dict(),
            **_numbers(self),
            "sampler": asdict(self.sampler) if self.sampler else None,
            "variational": asdict(self.variational) if self.variational else None,
            "limits": asdict(self.limits),
            "constants": self.constants,
            "undefined": self.undefined,
            "broken": dict(self.broken),
            "kinds": {"of": dict(self.kinds.of), "guessed": self.kinds.guessed},
            "checks": [check.to_dict(*own) for check in self.checks],
        } | ({"aligned": self.aligned.to_dict()} if self.aligned else {})
        parts |= {"predictions": self.points.to_dict()} if self.points else {}
        return json_safe(parts)


def _numbers(measured: Measured) -> dict[str, Any]:
    table = measured.parameters.to_dict("index").items()
    rows = [{"parameter": name, **row} for name, row in table]
    return {"summary": measured.summary(), "parameters": rows}


@dataclass(frozen=True, eq=False, repr=False)
class AlignedDiagnosis(Shown):
    """The diagnoses of a posterior before and after alignment.

    Attributes
    ----------
    raw, aligned : Measured
        The numbers before and after alignment. `aligned` contains only the moved variables.
    alignment : Alignment
        Elements, reference and rule.
    invariants : DataFrame
        One row per label-free quantity, with the same columns as the table of parameters.
    switching : Switching
        The number of label changes within chains, and whether alignment found more than it finds in noise.
    basins : tuple of tuple of int
        Groups of chains that agree after alignment, as tuples of chain numbers.
    chain_lp : tuple of float
        Mean log density of each chain, in nats; empty if `lp` was not recorded.
    shrinkage : float
        Ratio of aligned to raw standard deviation, as the median over moved parameters.
    numbered : DataFrame
        Rows of integers that index components, after alignment.
    caveat : str
        A sentence on the part of the symmetry that was not checked; empty if all was checked.
    """

    raw: Measured
    aligned: Measured
    alignment: Alignment
    invariants: pd.DataFrame
    switching: Switching
    basins: tuple[tuple[int, ...], ...]
    chain_lp: tuple[float, ...]
    shrinkage: float
    numbered: pd.DataFrame = field(default_factory=pd.DataFrame)
    caveat: str = ""

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on the alignment rule, label changes, and R-hat before and after alignment."""
        return tuple(_events(self))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that warn about limits of the alignment."""
        return tuple(_cautions(self))

    @property
    def invariant_rhat(self) -> Extreme:
        """The largest R-hat of label-free quantities."""
        return Extreme.of(self.invariants["rhat"])

    def _card(self) -> Card:
        numbers, free = self.raw.numbers, self.invariants
        moved = tabulated(numbers, self.aligned.parameters, "aligned parameters")
        fixed = tabulated(numbers, free, "not moved by the symmetry") if len(free) else ()
        warned = (Words(sentence, flag="warn") for sentence in self.warnings)
        return Card("Modulo its symmetry", (*map(Words, self.sentences), *warned, *moved, *fixed))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the raw diagnosis as plain types for JSON."""
        rows = [{"quantity": name, **row} for name, row in self.invariants.to_dict("index").items()]
        return json_safe(
            {
                "rule": self.alignment.text,
                "converged": self.alignment.converged,
                "diagnosis": _numbers(self.aligned),
                "invariants": rows,
                "switching": self.switching.to_dict(),
                "basins": self.basins,
                "chain_lp": self.chain_lp,
                "shrinkage": self.shrinkage,
                "caveat": self.caveat,
                "sentences": self.sentences,
                "warnings": self.warnings,
            }
        )


def _events(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    yield diagnosis.alignment.text
    labellings = diagnosis.switching.labellings
    if diagnosis.alignment.rotates:
        yield "Every draw had its own rotation."
    elif max(labellings, default=1) == 1:
        yield "Labels never changed within a chain."
        if (one := one_labelling(diagnosis.alignment)) is not None and not one.improbable:
            yield one.sentence
    else:
        counts = f"{min(labellings)} to {max(labellings)} labellings per chain"
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
        why = "there is one chain" if diagnosis.raw.num_chains == 1 else "no moved parameter varies"
        if diagnosis.raw.variational is not None:
            why = "draws of an approximation agree however far it is from the posterior"
        yield f"R-hat cannot be compared before and after: {why}."
        return
    free = f", {fixed.value:.3f} of label-free quantities" if fixed.parameter else ""
    yield f"Worst R-hat: {raw.value:.3f} raw, {aligned.value:.3f} aligned{free}."


def _cautions(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    limit = diagnosis.raw.limits.rhat
    rotates = diagnosis.alignment.rotates
    if rotates:
        yield (
            "Varimax chose the rotation, not the data: loadings and scores follow simple structure. Quantities that "
            "no rotation changes, such as L L' of loadings L, do not depend on this choice."
        )
    if len(diagnosis.basins) > 1:
        groups = "; ".join(", ".join(map(str, group)) for group in diagnosis.basins)
        yield (
            f"{len(diagnosis.basins)} groups of chains stay apart after alignment "
            f"({groups}): they are in modes that the symmetry does not connect."
            + _heights(diagnosis)
        )
    elif _far(diagnosis):
        yield "The chains' log densities lie far apart." + _heights(diagnosis)
    one = one_labelling(diagnosis.alignment)
    if one is not None and one.improbable:
        yield one.sentence
    # Name variables that no block moves if chains disagree about them but agree about the moved variables.
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
            "The alignment still moved components in the last of "
            f"{diagnosis.alignment.sweeps} sweeps. Allow more with `max_sweeps`."
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
            f"Alignment brings the draws hardly closer together than {diagnosis.switching.yardstick} (leaving "
            f"{diagnosis.switching.ratio:.2f} and {noise:.2f} of their variance): this posterior does not look like "
            "one mode per labelling."
        )
    elif overlap:
        yield (
            "Components overlap, so aligned means and standard deviations depend on the alignment rule, which is "
            "stored with them; compare invariants where that matters."
        )


def _far(diagnosis: AlignedDiagnosis) -> bool:
    """Check whether the lower mode is negligible, even allowing for Monte Carlo error."""
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
