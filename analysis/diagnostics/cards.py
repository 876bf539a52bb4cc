"""Cards of a diagnosis for notebooks and terminals: the answer first, then tables."""

from __future__ import annotations

from collections.abc import Sequence

from onebasin.base.card import Card, Fact, FactList, Part, Words
from onebasin.base.table import Table

from .verdict import Verdict


def card_of_verdict(verdict: Verdict, tables: Sequence[Table]) -> Card:
    """Show the answer with its rows, causes and what to do; then tables of parameters."""
    parts: list[Part] = [
        Words(verdict.sentence),
        FactList(tuple(Fact(row.name, row.sentence, row.flag) for row in verdict.rows)),
    ]
    for cause in verdict.causes:
        known = "" if cause.evidence in verdict.sentence else f"{cause.evidence} "
        parts.append(Words(f"{known}What to do: {cause.remedy}", name=cause.name))
    besides = (Words(s, small=True) for s in (*verdict.unjudged, *verdict.left_out))
    return Card(verdict.heading, (*parts, *tables, *besides), verdict.flag)


def card_of_numbers(checks: str, warnings: Sequence[str], tables: Sequence[Table]) -> Card:
    """Show what checks come to, where nobody asked for an answer."""
    first = Words(f"{checks[:1].upper()}{checks[1:]}.")
    words = (Words(sentence, flag="warn") for sentence in warnings)
    return Card("Numbers of a posterior", (first, *words, *tables))


def card_of_alignment(
    sentences: Sequence[str], warnings: Sequence[str], tables: Sequence[Table]
) -> Card:
    """Show what alignment did, and tables of aligned parameters and of label-free quantities."""
    words = [Words(sentence) for sentence in sentences]
    words += [Words(sentence, flag="warn") for sentence in warnings]
    return Card("Modulo its symmetry", (*words, *tables))
