"""What commands write of a diagnosis: the answer, its rows, why and what to do, then tables, each as wide as fits.

Everything that comes from files goes through `console.plain`: it is shown, never obeyed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from . import console

if TYPE_CHECKING:
    import pandas as pd

    from onebasin.analysis.diagnostics.result import AlignedDiagnosis, Diagnosis
    from onebasin.analysis.diagnostics.verdict import Verdict

WORST_SHOWN = 10
"""Entries that are shown of parameters; of what is computed of them, `WORST_BESIDE`."""
WORST_BESIDE = 4
DOUBTFUL = 1.05
"""R-hat above which a table begins with the worst entries, however few there are."""
LONGEST_NAME = 32
"""Characters of a name, at least, before a table leaves columns out for it."""

_FLAGS = {"passed": "good", "failed": "bad", "not judged": "warn"}
_TITLES = {
    "parameter": "parameters",
    "transformed": "transformed parameters",
    "generated": "generated quantities",
}
# Column, heading, decimals or None for significant digits, and what is left out first where a terminal is narrow.
_COLUMNS: tuple[tuple[str, str, int | None, int], ...] = (
    ("mean", "mean", None, 9),
    ("sd", "sd", None, 8),
    ("q5", "5 %", None, 6),
    ("median", "median", None, 4),
    ("q95", "95 %", None, 5),
    ("mcse_mean", "MCSE", None, 3),
    ("mcse_sd", "of sd", None, 1),
    ("rhat", "R-hat", 3, 9),
    ("ess_bulk", "bulk ESS", 0, 7),
    ("ess_tail", "tail ESS", 0, 2),
)
_TAILS = "Tail ESS is that of the 5 % and 95 % quantiles; `az.summary` takes its own interval's, 11 % and 89 %."


def write_findings(file: str, diagnosis: Diagnosis, *, name: str, json: bool) -> None:
    """Write what is known of one posterior: first whether it may be used."""
    if json:
        console.write_json({**diagnosis.to_dict(), "file": file})
        return
    write_answer(diagnosis)
    _write_numbers(diagnosis, name)
    if diagnosis.aligned:
        _write_aligned(diagnosis.aligned)
    for table, title, shown in _tables(diagnosis):
        _write_table(table, title, shown)
    _write_remarks(diagnosis)


def write_answer(diagnosis: Diagnosis) -> None:
    """Write an answer: its three rows, and causes with what to do."""
    verdict = diagnosis.judgement
    if verdict is None:
        return
    console.write_headline(verdict.heading, verdict.sentence, verdict.flag)
    rows = [(_FLAGS[row.outcome], row.name, row.sentence) for row in verdict.rows]
    console.write_rows(rows)
    for text, remedy in _causes(verdict):
        console.write_rows([("", "why", text), ("", "what to do", remedy)])


def _causes(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for cause in verdict.causes:
        known = cause.evidence in verdict.sentence
        yield cause.name if known else f"{cause.name}: {cause.evidence}", cause.remedy


def _write_numbers(diagnosis: Diagnosis, name: str) -> None:
    """Write the health table on its side: a number a line."""
    from onebasin.analysis.report import health_table

    table = health_table({name: diagnosis})
    (row,) = table.cells
    lines = []
    for cell, column, numeric in zip(row, table.headings, table.numeric, strict=True):
        value, note = column.write(cell.value), f" {cell.note}" if cell.note else ""
        if numeric:
            unit = f" ({column.unit})" if column.unit else ""
            lines.append((cell.flag, f"{column.name}{unit}", f"{value}{note}"))
        else:
            lines.append(("", column.name, f"{value}{note}"))
    console.write_rows(lines)


def _tables(diagnosis: Diagnosis) -> Iterator[tuple[pd.DataFrame, str, int]]:
    """Tables by kind, parameters first; without those that are shown aligned."""
    from onebasin.posteriors.draws import variable_of

    known = {*diagnosis.constants, *diagnosis.broken}
    aligned = diagnosis.aligned
    if aligned and diagnosis.verdict in ("aligned", "invariant"):
        known |= set(aligned.aligned.parameters.index)
    varying = diagnosis.parameters[~diagnosis.parameters.index.isin(known)]
    kinds = [
        diagnosis.kinds.of.get(variable_of(n, diagnosis.kinds.of), "parameter")
        for n in varying.index
    ]
    for kind, title in _TITLES.items():
        own = varying[[each == kind for each in kinds]]
        if len(own):
            yield own, title, WORST_SHOWN if kind == "parameter" else WORST_BESIDE


def _write_aligned(found: AlignedDiagnosis) -> None:
    from onebasin.analysis.report import aligned_table

    _write_table(found.aligned.parameters, "aligned parameters", WORST_SHOWN)
    console.write_table(aligned_table(found))
    for sentence in found.sentences:
        console.write_sentence(sentence)
    for sentence in found.warnings:
        console.write_remark(sentence, "warn")


def _write_remarks(diagnosis: Diagnosis) -> None:
    """What checks found beside the answer, what could not be judged, and what the answer does not rest on."""
    from onebasin.analysis.diagnostics.verdict import failures
    from onebasin.analysis.summaries.sampler import restarted

    verdict = diagnosis.judgement
    # Whether chains agree is what the answer says, with what labels have to do with it; its rows tell of the sampler.
    told = {"R-hat", "moving chains", "divergences", "tree depth", "E-BFMI", "finite draws"} | (
        set() if diagnosis.verdict in ("usable", "unusable") else {"bulk ESS", "tail ESS"}
    )
    for sentence in failures(diagnosis.checks, told):
        console.write_remark(sentence, "bad")
    for sentence in (*(diagnosis.notes if verdict is None else verdict.unjudged),):
        console.write_remark(sentence, "warn")
    for sentence in () if verdict is None else (*verdict.left_out, *restarted(diagnosis.sampler)):
        console.write_sentence(sentence)
    if len(diagnosis.parameters):
        console.write_sentence(_TAILS)
    if diagnosis.outcome != "failed":
        console.write_remark(diagnosis.checks_in_words, "good" if diagnosis.passed else "warn")


def _write_table(table: pd.DataFrame, title: str, shown: int) -> None:
    worst, caption = table, title
    if len(table) > shown or (table["rhat"] > DOUBTFUL).any():
        order = ["rhat", "ess_bulk"]
        worst = table.sort_values(order, ascending=[False, True], na_position="last").head(shown)
        caption = f"{title}: {len(worst)} of {len(table)}, worst first"
    columns = {
        heading: [_number(value, decimals) for value in worst[column]]
        for column, heading, decimals, _ in _COLUMNS
        if worst[column].notna().any()
    }
    names = [console.plain(str(name)) for name in worst.index]
    console.write_columns(caption, names, _fitting(names, columns))


def _number(value: float, decimals: int | None) -> str:
    from onebasin.base.numbers import format_number

    return format_number(value, digits=3, decimals=decimals)


def _fitting(names: Sequence[str], columns: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Leave out columns, least important first, until a table fits the terminal."""
    kept = dict(columns)
    order = sorted(_COLUMNS, key=lambda column: column[3])
    first = min(max((len(name) for name in names), default=0), LONGEST_NAME)
    for _, heading, _, _ in order:
        widths = [max(len(head), *map(len, cells)) + 2 for head, cells in kept.items()]
        if first + 3 + sum(widths) <= console.stdout().width or len(kept) < 3:
            break
        kept.pop(heading, None)
    return kept
