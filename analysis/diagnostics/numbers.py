"""Numbers of a table with their outcomes: what a mark, a colour and a sentence say of each, and how it is written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from onebasin.base.numbers import decimals_beside, format_number
from onebasin.base.table import Table

from .verdict import Extreme, Limits, Outcome, worst_of

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
WORST_SHOWN = 10
"""Entries of a table."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A table of parameters whose numbers are judged.

    Attributes
    ----------
    table
        One row a parameter, with `rhat`, `ess_bulk` and `ess_tail`.
    limits
        What they are judged by.
    chains
        How many there are.
    deciding
        Entries that the answer rests on; others are warned of at most.
    others_decide
        Whether quantities that are not in the table decide, such as those that a symmetry leaves alone.
    """

    table: pd.DataFrame
    limits: Limits
    chains: int
    deciding: frozenset[str]
    others_decide: bool = False

    @cached_property
    def decisive(self) -> pd.DataFrame:
        """Rows that the answer rests on."""
        return self.table[self.table.index.isin(self.deciding)]

    def outcome(self, column: str, value: float, entry: str) -> Outcome:
        """Judge one number.

        Parameters
        ----------
        column
            ``rhat``, ``ess_bulk`` or ``ess_tail``.
        value
            The number.
        entry
            The quantity that has it.
        """
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

    def worst(self, caption: str, table: pd.DataFrame, shown: int = WORST_SHOWN) -> Table:
        """Tabulate rows in their order where they are few and agree, else those that mix worst."""
        if len(table) > shown or (table["rhat"] > self.limits.deciding_rhat).any():
            order = ["rhat", "ess_bulk"]
            rows = table.sort_values(order, ascending=[False, True], na_position="last").head(shown)
            caption = f"{caption}: {len(rows)} of {len(table)}, worst first"
            table = rows
        known = [column for column in COLUMNS if table[column].notna().any()]
        cells = tuple(
            (f"`{name}`", *(self.written(column, row[column]) for column in known))
            for name, row in table.iterrows()
        )
        return Table(("", *(COLUMNS[column] for column in known)), cells, caption)
