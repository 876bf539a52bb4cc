"""A diagnosis as a card: the answer first, causes with what to do, then its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from onebasin.base.card import Card, Fact, Facts, Flag, Part, Table, Words
from onebasin.posteriors.draws import variable_of

from .checks import Outcome
from .verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

    from .result import AlignedDiagnosis, Diagnosis

WORST_SHOWN = 10
"""Entries of a table."""

_FLAGS: dict[Outcome, Flag] = {"passed": "good", "failed": "bad", "not judged": "warn"}
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


def of_diagnosis(diagnosis: Diagnosis) -> Card:
    """The answer with its rows, causes and what to do; then a table of parameters."""
    verdict = diagnosis.judgement
    numbers = tuple(_tables(diagnosis))
    if verdict is None:
        words = [Words(sentence, flag="warn") for sentence in diagnosis.warnings]
        return Card(
            "Numbers of a posterior",
            (Words(f"{_begin(diagnosis.checks_in_words)}."), *words, *numbers),
        )
    beside = (Words(s, small=True) for s in (*verdict.unjudged, *verdict.left_out))
    return Card(verdict.heading, (*of_verdict(verdict), *numbers, *beside), verdict.flag)


def of_verdict(verdict: Verdict) -> Iterator[Part]:
    """The answer's sentence, its rows, its causes."""
    yield Words(verdict.sentence)
    yield Facts(tuple(Fact(r.name, r.sentence, _FLAGS[r.outcome]) for r in verdict.rows))
    for cause in verdict.causes:
        known = "" if cause.evidence in verdict.sentence else f"{cause.evidence} "
        yield Words(f"{known}What to do: {cause.remedy}", name=cause.name)


def of_aligned(diagnosis: AlignedDiagnosis) -> Card:
    """What alignment did, and the table of aligned parameters."""
    words = [Words(sentence) for sentence in diagnosis.sentences]
    words += [Words(sentence, flag="warn") for sentence in diagnosis.warnings]
    tables = [worst("aligned parameters", diagnosis.aligned.parameters)]
    if len(diagnosis.invariants):
        tables.append(worst("left alone by the symmetry", diagnosis.invariants))
    return Card("Modulo its symmetry", (*words, *tables))


def _tables(diagnosis: Diagnosis) -> Iterator[Table]:
    aligned, table = diagnosis.aligned, diagnosis.parameters
    if aligned is not None and diagnosis.verdict in ("aligned", "invariant"):
        yield worst("aligned parameters", aligned.aligned.parameters)
        table = table.drop(index=aligned.aligned.parameters.index, errors="ignore")
    kinds = [
        diagnosis.kinds.of.get(variable_of(n, diagnosis.kinds.of), "parameter") for n in table.index
    ]
    own = table[[kind == "parameter" for kind in kinds]].drop(
        index=[*diagnosis.constants, *diagnosis.broken], errors="ignore"
    )
    if len(own):
        yield worst("parameters", own)


def worst(caption: str, table: pd.DataFrame) -> Table:
    """The rows of a summary that mix worst."""
    order = ["rhat", "ess_bulk"]
    rows = table.sort_values(order, ascending=[False, True], na_position="last").head(WORST_SHOWN)
    more = f", {len(rows)} of {len(table)}, worst first" if len(rows) < len(table) else ""
    known = [column for column in _COLUMNS if rows[column].notna().any()]
    cells = tuple(
        (str(name), *(_number(row[column], column) for column in known))
        for name, row in rows.iterrows()
    )
    return Table(caption + more, tuple(_COLUMNS[column] for column in known), cells)


def _number(value: float, column: str) -> str:
    if math.isnan(value):
        return "–"
    if column == "rhat":
        return f"{value:.3f}"
    return f"{value:.0f}" if column.startswith("ess") else f"{value:.3g}"


def _begin(words: str) -> str:
    return words[:1].upper() + words[1:]
