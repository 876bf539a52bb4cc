"""Output of a diagnosis by commands: the answer, its rows, why and what to do, then tables, each as wide as fits.

Everything that comes from files goes through `console.plain`: it is shown, never obeyed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import console

if TYPE_CHECKING:
    from onebasin.analysis.diagnostics.result import Diagnosis
    from onebasin.base.table import Table

WORST_BESIDE = 4
"""Entries that are shown of what is computed of parameters."""
LONGEST_NAME = 32
"""Characters of a name, at least, before a table leaves columns out for it."""

_LEFT_OUT = ("of sd", "tail ESS", "MCSE", "median", "95 %", "5 %", "bulk ESS", "sd")
"""Columns that are left out where a terminal is narrow, in this order."""
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
        shown = {} if kind == "parameter" else {"shown": WORST_BESIDE}
        _write_table(diagnosis.numbers.worst(title, table, **shown))
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
    """Write the remarks next to the answer, and the quantities not used for the verdict."""
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


def _write_table(table: Table) -> None:
    """Write a table without columns that do not fit, least important first."""
    names = [console.plain(str(row[0]).strip("`")) for row in table.rows]
    cells = zip(*(row[1:] for row in table.rows), strict=True)
    columns = {str(c): [*map(str, own)] for c, own in zip(table.columns[1:], cells, strict=True)}
    first = min(max(map(len, names), default=0), LONGEST_NAME)
    for heading in _LEFT_OUT:
        widths = [max(len(head), *map(len, own)) + 2 for head, own in columns.items()]
        if first + 3 + sum(widths) <= console.stdout().width or len(columns) < 3:
            break
        columns.pop(heading, None)
    console.write_columns(table.caption, names, columns)
