"""A diagnosis as a notebook shows it: small HTML, in light and dark, with every text from files escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from onebasin.models.text import shown

from ..posterior.draws import variable_of
from .verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

    from .result import AlignedDiagnosis, Diagnosis

WORST_SHOWN = 10
"""Entries of a table."""

_MARKS = {"passed": ("✓", "good"), "failed": ("✗", "bad"), "not judged": ("!", "warn")}
_COLUMNS = {
    "mean": "mean",
    "sd": "sd",
    "q5": "5 %",
    "median": "median",
    "q95": "95 %",
    "rhat": "R-hat",
    "ess_bulk": "bulk ESS",
    "ess_tail": "tail ESS",
}
_STYLE = """
.onebasin{color-scheme:light dark;max-width:52rem;line-height:1.45;--good:light-dark(#1a7f4b,#5bd08f);
--warn:light-dark(#9a6700,#e3b341);--bad:light-dark(#b42318,#ff8a7a)}
.onebasin .good{color:var(--good)}.onebasin .warn{color:var(--warn)}.onebasin .bad{color:var(--bad)}
.onebasin h4{margin:.2em 0;font-size:1.15em}.onebasin p{margin:.3em 0}.onebasin div{overflow-x:auto}
.onebasin table{border-collapse:collapse;margin:.5em 0;font-size:.92em}
.onebasin td,.onebasin th{padding:.12em .6em .12em 0;text-align:left;vertical-align:top;border:0;background:none}
.onebasin .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.onebasin caption{text-align:left;font-weight:600}.onebasin small{opacity:.75}
"""


def of_diagnosis(diagnosis: Diagnosis) -> str:
    """The answer with its rows, causes and what to do; then a table of parameters."""
    return _page(_diagnosis(diagnosis))


def of_aligned(diagnosis: AlignedDiagnosis) -> str:
    """What alignment did, and the table of aligned parameters."""
    return _page(_aligned(diagnosis))


def _diagnosis(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.judgement is not None:
        yield from _verdict(diagnosis.judgement)
    aligned, table = diagnosis.aligned, diagnosis.parameters
    if aligned is not None and diagnosis.verdict in ("aligned", "invariant"):
        yield _table("aligned parameters", aligned.aligned.parameters)
        table = table.drop(index=aligned.aligned.parameters.index, errors="ignore")
    kinds = [
        diagnosis.kinds.of.get(variable_of(n, diagnosis.kinds.of), "parameter") for n in table.index
    ]
    own = table[[kind == "parameter" for kind in kinds]].drop(
        index=[*diagnosis.constants, *diagnosis.broken], errors="ignore"
    )
    if len(own):
        yield _table("parameters", own)
    if diagnosis.judgement is not None:
        beside = (*diagnosis.judgement.unjudged, *diagnosis.judgement.left_out)
        yield from (f"<p><small>{_text(sentence)}</small></p>" for sentence in beside)


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield f'<h4 class="{verdict.flag}">{_text(verdict.heading)}</h4><p>{_text(verdict.sentence)}</p>'
    rows = "".join(
        f'<tr><td class="{flag}">{mark}</td><th>{_text(row.name)}</th><td>{_text(row.sentence)}</td></tr>'
        for row in verdict.rows
        for mark, flag in [_MARKS[row.outcome]]
    )
    yield f"<table>{rows}</table>"
    for cause in verdict.causes:
        known = "" if cause.evidence in verdict.sentence else f" {_text(cause.evidence)}"
        yield f"<p><b>{_text(cause.name)}</b>{known} <em>What to do:</em> {_text(cause.remedy)}</p>"


def _aligned(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    yield f"<h4>Modulo its symmetry</h4>{_paragraphs(diagnosis.sentences)}"
    yield from (f'<p class="warn">{_text(sentence)}</p>' for sentence in diagnosis.warnings)
    yield _table("aligned parameters", diagnosis.aligned.parameters)
    if len(diagnosis.invariants):
        yield _table("left alone by the symmetry", diagnosis.invariants)


def _table(caption: str, table: pd.DataFrame) -> str:
    order = ["rhat", "ess_bulk"]
    worst = table.sort_values(order, ascending=[False, True], na_position="last").head(WORST_SHOWN)
    more = f", {len(worst)} of {len(table)}, worst first" if len(worst) < len(table) else ""
    known = [column for column in _COLUMNS if worst[column].notna().any()]
    heads = "".join(f'<th class="n">{_COLUMNS[column]}</th>' for column in known)
    rows = "".join(
        f"<tr><td><code>{_text(str(name))}</code></td>"
        + "".join(f'<td class="n">{_number(row[column], column)}</td>' for column in known)
        + "</tr>"
        for name, row in worst.iterrows()
    )
    head = f"<caption>{_text(caption + more)}</caption><tr><th></th>{heads}</tr>"
    return f"<div><table>{head}{rows}</table></div>"


def _number(value: float, column: str) -> str:
    if math.isnan(value):
        return "–"
    if column == "rhat":
        return f"{value:.3f}"
    return f"{value:.0f}" if column.startswith("ess") else f"{value:.3g}"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{_text(sentence)}</p>" for sentence in sentences)


def _text(text: str) -> str:
    """Text as HTML, what stands in backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(shown(text)))


def _page(parts: Iterable[str]) -> str:
    return f'<div class="onebasin"><style>{_STYLE}</style>{"".join(parts)}</div>'
