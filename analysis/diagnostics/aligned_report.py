"""Tables of a diagnosis modulo symmetry."""

from __future__ import annotations

import pandas as pd

from ..report import Column, Table
from .aligned import ModuloDiagnosis


def comparison_table(found: ModuloDiagnosis, *, caption: str = "modulo symmetry") -> Table:
    """Tabulate the worst R-hat and effective sample sizes: raw, aligned, and of what nothing moves."""
    moved = found.raw.parameters.reindex(found.aligned.parameters.index)
    rows: list[tuple[str, float | None, float | None, float | None]] = [
        ("raw, moved parameters", *_worst(moved)),
        ("aligned, moved parameters", *_worst(found.aligned.parameters)),
    ]
    if found.held_out_rhat is not None:
        rows.append(("aligned, chains held out", found.held_out_rhat.value, None, None))
    if len(found.invariants):
        rows.append(("left alone by the symmetry", *_worst(found.invariants)))
    columns = (
        "draws",
        Column("R-hat", decimals=3, unit="largest"),
        Column("bulk ESS", decimals=0, unit="smallest"),
        Column("tail ESS", decimals=0, unit="smallest"),
    )
    return Table(columns, tuple(rows), caption)


def _worst(table: pd.DataFrame) -> tuple[float, float, float]:
    return table["rhat"].max(), table["ess_bulk"].min(), table["ess_tail"].min()
