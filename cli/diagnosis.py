"""What commands write of a diagnosis: the answer, its rows, why and what to do, then tables, each as wide as fits.

Everything that comes from files goes through `console.plain`: it is shown, never obeyed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import console

if TYPE_CHECKING:
    import pandas as pd

    from onebasin.analysis.diagnostics.result import Diagnosis

WORST_SHOWN = 10
"""Entries that are shown of parameters; of what is computed of them, `WORST_BESIDE`."""
WORST_BESIDE = 4
LONGEST_NAME = 32
"""Characters of a name, at least, before a table leaves columns out for it."""

# Heading of a column, and what is left out first where a terminal is narrow.
_COLUMNS: Mapping[str, tuple[str, int]] = {
    "mean": ("mean", 9),
    "sd": ("sd", 8),
    "q5": ("5 %", 6),
    "median": ("median", 4),
    "q95": ("95 %", 5),
    "mcse_mean": ("MCSE", 3),
    "mcse_sd": ("of sd", 1),
    "rhat": ("R-hat", 9),
    "ess_bulk": ("bulk ESS", 7),
    "ess_tail": ("tail ESS", 2),
}
_TAILS = "Tail ESS is that of the 5 % and 95 % quantiles; `az.summary` takes its own interval's, 11 % and 89 %."


def write_findings(file: str, diagnosis: Diagnosis, *, name: str, json: bool) -> None:
    """Write what is known of one posterior: first whether it may be used."""
    if json:
        console.write_json({**diagnosis.to_dict(), "file": file})
        return
    write_answer(diagnosis)
    _write_numbers(diagnosis, name)
    if diagnosis.aligned is not None:
        from onebasin.analysis.report import aligned_table

        console.write_table(aligned_table(diagnosis.aligned))
        for sentence in diagnosis.aligned.sentences:
            console.write_sentence(sentence)
        for sentence in diagnosis.aligned.warnings:
            console.write_remark(sentence, "warn")
    for title, table, kind in diagnosis.tables():
        _write_table(diagnosis, table, title, WORST_SHOWN if kind == "parameter" else WORST_BESIDE)
    _write_remarks(diagnosis)


def write_answer(diagnosis: Diagnosis) -> None:
    """Write an answer: its three rows, and causes with what to do."""
    verdict = diagnosis.judgement
    if verdict is None:
        return
    console.write_headline(verdict.heading, verdict.sentence, verdict.flag)
    console.write_rows([(row.flag, row.name, row.sentence) for row in verdict.rows])
    for cause in verdict.causes:
        known = cause.evidence in verdict.sentence
        text = cause.name if known else f"{cause.name}: {cause.evidence}"
        console.write_rows([("", "why", text), ("", "what to do", cause.remedy)])


def _write_numbers(diagnosis: Diagnosis, name: str) -> None:
    """Write the health table on its side: a number a line."""
    from onebasin.analysis.report import health_table

    table = health_table({name: diagnosis})
    (row,) = table.cells
    lines = []
    for cell, column, numeric in zip(row, table.headings, table.numeric, strict=True):
        value, note = column.write(cell.value), f" {cell.note}" if cell.note else ""
        unit = f" ({column.unit})" if numeric and column.unit else ""
        lines.append((cell.flag if numeric else "", f"{column.name}{unit}", f"{value}{note}"))
    console.write_rows(lines)


def _write_remarks(diagnosis: Diagnosis) -> None:
    """Write what is to be read beside the answer, and what the answer does not rest on."""
    verdict = diagnosis.judgement
    for reason in () if verdict is None else verdict.remarks:
        for sentence in reason.sentences:
            console.write_remark(sentence, reason.flag)
    for sentence in diagnosis.notes if verdict is None else verdict.left_out:
        console.write_sentence(sentence)
    if len(diagnosis.parameters):
        console.write_sentence(_TAILS)
    if diagnosis.outcome != "failed":
        console.write_remark(diagnosis.checks_in_words, "good" if diagnosis.passed else "warn")


def _write_table(diagnosis: Diagnosis, table: pd.DataFrame, title: str, shown: int) -> None:
    worst, caption = table, title
    if len(table) > shown or (table["rhat"] > diagnosis.limits.deciding_rhat).any():
        order = ["rhat", "ess_bulk"]
        worst = table.sort_values(order, ascending=[False, True], na_position="last").head(shown)
        caption = f"{title}: {len(worst)} of {len(table)}, worst first"
    columns = {
        heading: [diagnosis.written(column, value) for value in worst[column]]
        for column, (heading, _) in _COLUMNS.items()
        if worst[column].notna().any()
    }
    names = [console.plain(str(name)) for name in worst.index]
    console.write_columns(caption, names, _fitting(names, columns))


def _fitting(names: Sequence[str], columns: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Leave out columns, least important first, until a table fits the terminal."""
    kept = dict(columns)
    first = min(max((len(name) for name in names), default=0), LONGEST_NAME)
    for heading, _ in sorted(_COLUMNS.values(), key=lambda column: column[1]):
        widths = [max(len(head), *map(len, cells)) + 2 for head, cells in kept.items()]
        if first + 3 + sum(widths) <= console.stdout().width or len(kept) < 3:
            break
        kept.pop(heading, None)
    return kept
