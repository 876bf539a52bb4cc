"""One posterior in numbers, and the outcome of each number: what its checks look at.

Convention: chains and indices count from 0. A quantity that was not recorded or does not apply is None or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import pandas as pd

from onebasin.base.card import NARROW, Card, Words, in_brief, page, table_lines
from onebasin.base.table import MOST, Table, TableCell, decimals_beside, format_number, with_minus
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.view import Kinds

from ..summaries.sampler import NAN, Heights, SamplerSummary, compare_heights
from ..summaries.summary import Recurring
from ..summaries.variational import VariationalSummary
from .verdict import FLAGS, Extreme, Limits, Outcome, worst_of

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
LEFT_OUT = ("of sd", "MCSE", "median", "tail ESS", "95 %", "5 %", "bulk ESS", "sd")
"""Columns that are left out where a line is too long, in this order."""
_PLACES = ("mean", "q5", "median", "q95")
Row = Mapping[str, float]
_ORDER = ("parameter", "transformed", "generated")


@dataclass(frozen=True, eq=False)
class Numbers:
    """A table of parameters whose numbers are judged."""

    table: pd.DataFrame  # one row per parameter, with `rhat`, `ess_bulk` and `ess_tail`
    limits: Limits
    chains: int
    deciding: frozenset[str]  # entries that decide the verdict; others can at most cause a warning
    others_decide: bool = False  # quantities that are not in the table, such as invariants
    kinds: Mapping[str, str] = field(default_factory=dict)  # kinds of variables

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
        """Return the limits of a column; empty if its numbers are not judged."""
        if column == "rhat":
            return self.limits.rhat, self.limits.deciding_rhat
        return (self.limits.least_ess(self.chains),) if column in DECIMALS else ()

    def written(self, column: str, value: float) -> str:
        """Write a number that is judged, with as many digits as tell it from its limits."""
        return format_number(value, decimals=self._decimals(column, value))

    def _decimals(self, column: str, *values: float) -> int:
        """Return how many decimals tell some numbers from the limits of their column."""
        limits, least = self.limits_of(column), DECIMALS[column]
        known = (value for value in values if not math.isnan(value))
        return max((decimals_beside(value, limits, least) for value in known), default=least)

    def in_order(
        self, table: pd.DataFrame, caption: str, most: int | None = ROWS
    ) -> tuple[Table] | tuple[Table, Words]:
        """Tabulate at most that many rows in the model's order, scalars first; a variable has all of its rows, or none.

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
        rows = table[table.index.isin(shown)].to_dict("index")
        rhat_decimals = self._decimals("rhat", *(row["rhat"] for row in rows.values()))
        cells: tuple[tuple[str | TableCell, ...], ...] = tuple(
            (f"`{name}`", *(self._cell(column, row, name, rhat_decimals) for column in known))
            for name, row in rows.items()
        )
        found = Table(("", *(COLUMNS[column] for column in known)), cells, caption)
        return (found, self._rest(table, len(table) - len(shown), left)) if left else (found,)

    def _cell(self, column: str, row: Row, entry: str, rhat_decimals: int) -> TableCell:
        value = row[column]
        if column in _PLACES:
            return TableCell(_as_precise(value, row["sd"], row["mcse_mean"]))
        if column not in DECIMALS:
            written = _as_precise(value, value, row["mcse_sd"]) if column == "sd" else ""
            return TableCell(written or format_number(value, digits=2))
        decimals = rhat_decimals if column == "rhat" else self._decimals(column, value)
        text = format_number(value, decimals=decimals)
        outcome = self.outcome(column, value, entry)
        marked = not math.isnan(value) and outcome != "passed"
        return TableCell(text, FLAGS[outcome] if marked else "")

    def _rest(self, table: pd.DataFrame, count: int, left: list[str]) -> Words:
        """Say how many rows are left out, and the worst numbers of all rows."""
        columns = {c: Extreme.of(table[c], smallest=c != "rhat") for c in DECIMALS}
        found = [(c, each.value, each.parameter) for c, each in columns.items() if each.parameter]
        worst = ", ".join(f"{COLUMNS[c]} {self.written(c, v)} (`{name}`)" for c, v, name in found)
        said = f" Worst of all {len(table)}: {worst}." if worst else ""
        outcome = worst_of(self.outcome(*each) for each in found)
        return Words(f"{count} more ({in_brief(left)}).{said}", flag=FLAGS[outcome])


def _as_precise(value: float, sd: float, error: float) -> str:
    """Write a number to two digits of a standard deviation, and to one of its own Monte Carlo error."""
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
    """A table of parameters that prints as `diagnose` prints it, and holds every row and digit."""

    _metadata: ClassVar = ["numbers"]

    def __init__(self, table: pd.DataFrame, numbers: Numbers) -> None:
        super().__init__(table)
        self.numbers = numbers

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __repr__(self) -> str:
        """Show the rows that `diagnose` shows, in lines of at most 80 characters where that can be."""
        if [*self.columns] != [*self.numbers.table.columns]:
            return super().__repr__()
        table, *rest = self.numbers.in_order(self, "parameters")
        narrow = narrowed(table)
        left = [c.name for c in table.headings if c not in narrow.headings]
        rest += [Words(f"Hidden for width: {', '.join(left)}.")] if left else []
        return Card("", (narrow, *rest)).text().lstrip("\n")

    def _repr_html_(self) -> str:
        return page(Card("", self.numbers.in_order(self, "parameters")))


def narrowed(table: Table) -> Table:
    """Leave columns out of a table until its lines are short."""
    for name in LEFT_OUT:
        if max(map(len, table_lines(table))) <= NARROW:
            break
        places = [k for k, column in enumerate(table.headings) if column.name != name]
        table = table.narrowed(places)
    return table


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """The numbers of one posterior as sampled; `Diagnosis`, which adds the answer, documents them."""

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

    @property
    def verdict(self) -> str | None:
        """The answer, if there is one yet."""
        return None

    @property
    def shown(self) -> pd.DataFrame:
        """The table that is shown and judged."""
        return self.parameters

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

    def decides(self, entry: str) -> bool:
        """Check whether the answer rests on an entry.

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
        """Mean log densities of the chains; None if there are not two to compare."""
        sampler = self.sampler
        if self.density_heights or sampler is None or len(sampler.lp_errors) < 2:
            return self.density_heights
        return compare_heights(sampler.lp_means, sampler.lp_errors)
