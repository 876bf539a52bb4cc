"""Tables of parameters for a page: by variable, with quantiles and Monte Carlo errors, flagged against the limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from onebasin.base.table import Column, Row, RowGroup, Table, TableCell, format_number
from onebasin.posteriors.draws import variable_of

from ..diagnostics.result import DECIMALS, Diagnosis
from ..diagnostics.verdict import FLAGS, Extreme

OPEN = 16
"""Rows up to which a table's groups are open from the start."""

_BEFORE = "rhat_before"
"""Column of R-hat before alignment."""
_PLACES = {
    "median": Column("median"),
    "q5": Column("5 %"),
    "q95": Column("95 %"),
    "mean": Column("mean"),
    "sd": Column("sd"),
    "mcse_mean": Column("MCSE", digits=2, unit="of the mean"),
    "mcse_sd": Column("MCSE", digits=2, unit="of the sd"),
    _BEFORE: Column("R-hat", decimals=3, unit="as it came"),
}


def quantity_table(
    diagnosis: Diagnosis, table: pd.DataFrame, *, heading: str, caption: str
) -> Table:
    """Tabulate quantities, one a row, in the table's order; numbers have the diagnosis's outcomes."""
    rows = tuple(_rows(diagnosis, table))
    return Table(_columns(diagnosis, table, heading), rows, caption).without_empty_columns()


def grouped_table(
    diagnosis: Diagnosis, table: pd.DataFrame, *, raw: pd.DataFrame | None = None, caption: str
) -> Table:
    """Tabulate parameters by variable: one that has several entries is a row that its entries fold under.

    Numbers have the diagnosis's outcomes; the R-hat of `raw`, the table before alignment, stands next to it.
    """
    if raw is not None:
        table = table.assign(**{_BEFORE: raw["rhat"].reindex(table.index)})
    rows = dict(zip(map(str, table.index), _rows(diagnosis, table), strict=True))
    by_variable: dict[str, list[str]] = {}
    for name in rows:
        by_variable.setdefault(variable_of(name, diagnosis.kinds.of), []).append(name)
    alone = tuple(rows[names[0]] for variable, names in by_variable.items() if names == [variable])
    groups = tuple(
        RowGroup(
            _heading(diagnosis, variable, table.loc[names]),
            tuple(rows[name] for name in names),
            open=len(rows) <= OPEN,
        )
        for variable, names in by_variable.items()
        if names != [variable]
    )
    columns = _columns(diagnosis, table, "parameter")
    return Table(columns, alone, caption, groups=groups).without_empty_columns()


def _columns(diagnosis: Diagnosis, table: pd.DataFrame, heading: str) -> tuple[Column | str, ...]:
    limits = diagnosis.numbers.limits_of
    unit = "aligned" if _BEFORE in table else ""
    return (
        heading,
        *(column for name, column in _PLACES.items() if name in table),
        Column("R-hat", decimals=3, unit=unit, limits=limits("rhat")),
        Column("bulk ESS", decimals=0, limits=limits("ess_bulk")),
        Column("tail ESS", decimals=0, limits=limits("ess_tail")),
    )


def _rows(diagnosis: Diagnosis, table: pd.DataFrame) -> Iterator[Row]:
    places = [name for name in _PLACES if name in table]
    for name, row in zip(map(str, table.index), table.to_dict("records"), strict=True):
        judged = (_judged(diagnosis, column, row[column], name) for column in DECIMALS)
        yield (f"`{name}`", *(float(row[place]) for place in places), *judged)


def _heading(diagnosis: Diagnosis, variable: str, table: pd.DataFrame) -> Row:
    """The variable's worst numbers, and how many entries it has."""
    entries = f"{format_number(len(table))} entries; the worst of each column"
    worst = {c: Extreme.of(table[c], smallest=c != "rhat").value for c in DECIMALS}
    judged = (_judged(diagnosis, c, value, str(table.index[0])) for c, value in worst.items())
    return (
        TableCell(f"`{variable}`", note=entries if len(table) > 1 else "1 entry"),
        *(
            Extreme.of(table[name]).value if name == _BEFORE else None
            for name in _PLACES
            if name in table
        ),
        *judged,
    )


def _judged(diagnosis: Diagnosis, column: str, value: float, entry: str) -> TableCell:
    """Mark a number that is warned of or fails: a page of thousands of ticks would hide the one cross."""
    if np.isnan(value):
        return TableCell(None)
    if not diagnosis.has_chains:  # independent draws: many of them prove nothing
        return TableCell(float(value))
    outcome = diagnosis.numbers.outcome(column, value, entry)
    return TableCell(float(value), "" if outcome == "passed" else FLAGS[outcome])
