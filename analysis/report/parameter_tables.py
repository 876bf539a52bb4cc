"""Tables of parameters for a page: by variable, with quantiles and Monte Carlo errors, flagged against the limits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from onebasin.base.numbers import format_number
from onebasin.base.table import Column, Flag, Row, RowGroup, Table, TableCell
from onebasin.posteriors.draws import variable_of

from ..diagnostics.measure import DECIDES
from ..diagnostics.result import Diagnosis

OPEN = 16
"""Rows up to which a table's groups are open from the start."""

_PLACES = {
    "median": Column("median"),
    "q5": Column("5 %"),
    "q95": Column("95 %"),
    "mean": Column("mean"),
    "sd": Column("sd"),
    "mcse_mean": Column("MCSE", digits=2, unit="of the mean"),
    "mcse_sd": Column("MCSE", digits=2, unit="of the sd"),
}


def quantity_table(
    diagnosis: Diagnosis, table: pd.DataFrame, *, heading: str = "parameter", caption: str = ""
) -> Table:
    """Tabulate quantities, one a row, in the table's order.

    Parameters
    ----------
    diagnosis
        Whose limits numbers are held against.
    table
        One row per quantity, with the columns of `posterior.summary.COLUMNS`.
    heading
        What a row is.
    caption
        What the table shows.
    """
    rows = tuple(_rows(diagnosis, table, None))
    return Table(_columns(table, heading, None), rows, caption).without_empty_columns()


def grouped_table(
    diagnosis: Diagnosis,
    table: pd.DataFrame,
    *,
    raw: pd.DataFrame | None = None,
    caption: str = "",
) -> Table:
    """Tabulate parameters by variable: one that has several entries is a row that its entries fold under.

    Parameters
    ----------
    diagnosis
        Whose limits numbers are held against.
    table
        One row per parameter, with the columns of `posterior.summary.COLUMNS`.
    raw
        The same before alignment; its R-hat stands beside.
    caption
        What the table shows.
    """
    before = None if raw is None else raw["rhat"].reindex(table.index)
    rows = dict(zip(map(str, table.index), _rows(diagnosis, table, before), strict=True))
    by_variable: dict[str, list[str]] = {}
    for name in rows:
        by_variable.setdefault(variable_of(name, diagnosis.kinds.of), []).append(name)
    alone = tuple(rows[names[0]] for variable, names in by_variable.items() if names == [variable])
    groups = tuple(
        RowGroup(
            _heading(diagnosis, variable, table.loc[names], before),
            tuple(rows[name] for name in names),
            open=len(rows) <= OPEN,
        )
        for variable, names in by_variable.items()
        if names != [variable]
    )
    columns = _columns(table, "parameter", before)
    return Table(columns, alone, caption, groups=groups).without_empty_columns()


def _columns(
    table: pd.DataFrame, heading: str, before: pd.Series | None
) -> tuple[Column | str, ...]:
    rhat = Column("R-hat", decimals=3, unit="" if before is None else "aligned")
    known = tuple(column for name, column in _PLACES.items() if name in table)
    raw = () if before is None else (Column("R-hat", decimals=3, unit="as it came"),)
    return (
        heading,
        *known,
        *raw,
        rhat,
        Column("bulk ESS", decimals=0),
        Column("tail ESS", decimals=0),
    )


def _rows(diagnosis: Diagnosis, table: pd.DataFrame, before: pd.Series | None) -> list[Row]:
    places = [name for name in _PLACES if name in table]
    numbers = table[places].to_numpy(dtype=float).tolist()
    rhat, bulk, tail = (table[name].tolist() for name in ("rhat", "ess_bulk", "ess_tail"))
    raw = None if before is None else before.tolist()
    return [
        (
            f"`{name}`",
            *numbers[k],
            *(() if raw is None else (raw[k],)),
            _rhat(diagnosis, rhat[k]),
            _ess(diagnosis, bulk[k]),
            _ess(diagnosis, tail[k]),
        )
        for k, name in enumerate(map(str, table.index))
    ]


def _heading(
    diagnosis: Diagnosis, variable: str, table: pd.DataFrame, before: pd.Series | None
) -> Row:
    """The variable's worst numbers, and how many entries it has."""
    blank = [None] * sum(name in table for name in _PLACES)
    raw = () if before is None else (_worst(before.loc[table.index], largest=True),)
    count = (
        f"{format_number(len(table))} entries; the worst of each column"
        if len(table) > 1
        else "1 entry"
    )
    return (
        TableCell(f"`{variable}`", note=count),
        *blank,
        *raw,
        _rhat(diagnosis, _worst(table["rhat"], largest=True)),
        _ess(diagnosis, _worst(table["ess_bulk"])),
        _ess(diagnosis, _worst(table["ess_tail"])),
    )


def _worst(column: pd.Series, *, largest: bool = False) -> float:
    known = column.dropna()
    if known.empty:
        return float("nan")
    return float(known.max() if largest else known.min())


def _rhat(diagnosis: Diagnosis, value: float) -> TableCell:
    if diagnosis.limits.rhat < value <= DECIDES:  # the answer does not rest on it
        return TableCell(value, "warn")
    return _flagged(value, value <= diagnosis.limits.rhat)


def _ess(diagnosis: Diagnosis, value: float) -> TableCell:
    if not diagnosis.has_chains:  # independent draws: many of them prove nothing
        return TableCell(float(value))
    return _flagged(value, value >= diagnosis.min_ess)


def _flagged(value: float, good: bool) -> TableCell:
    if np.isnan(value):
        return TableCell(None)
    flag: Flag = "" if good else "bad"  # a page of thousands of ticks hides the one cross
    return TableCell(float(value), flag)
