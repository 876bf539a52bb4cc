"""Output of a diagnosis by commands: the answer, its rows, what to do and one table; all else on request.

Everything that comes from files goes through `console.plain`: it is shown, never obeyed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import console

if TYPE_CHECKING:
    from onebasin.analysis.diagnostics.result import Diagnosis

_LEFT_OUT = ("of sd", "MCSE", "median", "tail ESS", "95 %", "5 %", "bulk ESS", "sd")
"""Columns that are left out where a terminal is narrow, in this order."""
_TAILS = "Tail ESS is that of the 5 % and 95 % quantiles; `az.summary` takes its own interval's, 11 % and 89 %."


def write_findings(
    file: str, diagnosis: Diagnosis, *, name: str, json: bool, details: bool = False
) -> None:
    """Write what is known of one posterior: first whether it may be used."""
    if json:
        console.write_json({**diagnosis.to_dict(), "file": file})
        return
    console.write_card(diagnosis.card(whole=details), left_out=_LEFT_OUT)
    if not details:
        console.write_sentence("More: --details")
        return
    # The numbers behind the answer, what alignment did, and every check.
    from onebasin.analysis.report import aligned_table, health_table

    table = health_table({name: diagnosis})
    (row,) = table.cells
    lines = []
    for cell, column, numeric in zip(row, table.headings, table.numeric, strict=True):
        value, note = column.write(cell.value), f" {cell.note}" if cell.note else ""
        unit = f" ({column.unit})" if numeric and column.unit else ""
        lines.append((cell.flag if numeric else "", f"{column.name}{unit}", f"{value}{note}"))
    console.write_rows(lines)
    if diagnosis.aligned is not None:
        console.write_table(aligned_table(diagnosis.aligned))
        for sentence in diagnosis.aligned.sentences:
            console.write_sentence(sentence)
        for sentence in diagnosis.aligned.warnings:
            console.write_remark(sentence, "warn")
    verdict = diagnosis.judgement
    said = set() if verdict is None else {*verdict.left_out}
    remarks = [(text, check.flag) for check in diagnosis.checks for text in check.sentences]
    for sentence, flag in (*remarks, *((note, "") for note in diagnosis.notes)):
        if sentence not in said:
            console.write_remark(sentence, flag)
        said.add(sentence)
    console.write_sentence(_TAILS)
    console.write_remark(diagnosis.checks_in_words, "good" if diagnosis.passed else "warn")
