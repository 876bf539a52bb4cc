"""Cards of a diagnosis for notebooks and terminals: the answer first, then one table."""

from __future__ import annotations

from collections.abc import Sequence

from onebasin.base.card import Card, Fact, FactList, Part, Words

from .verdict import Verdict


def card_of_verdict(verdict: Verdict, table: Sequence[Part]) -> Card:
    """Show the answer with its rows and what to do; then the table, and what is not used for the verdict."""
    parts: list[Part] = [Words(verdict.in_short)]
    parts.append(FactList(tuple(Fact(row.name, row.sentence, row.flag) for row in verdict.rows)))
    lines: list[tuple[str, str]] = []
    for name, evidence, remedy in verdict.steps:
        lines.append(("why", f"{name}: {evidence}" if evidence else name))
        lines.append(("what to do", remedy))
    parts += [FactList.of(*lines)] if lines else []
    for remark in verdict.own_remarks:
        parts += [Words(sentence, flag=remark.flag) for sentence in remark.sentences]
    parts += [*table, *(Words(sentence, small=True) for sentence in verdict.left_out)]
    return Card(verdict.heading, tuple(parts), verdict.flag)


def card_of_numbers(checks: str, warnings: Sequence[str], table: Sequence[Part]) -> Card:
    """Show what checks come to, where nobody asked for an answer."""
    first = Words(f"{checks[:1].upper()}{checks[1:]}.")
    words = (Words(sentence, flag="warn") for sentence in warnings)
    return Card("Numbers of a posterior", (first, *words, *table))


def card_of_alignment(
    sentences: Sequence[str], warnings: Sequence[str], tables: Sequence[Part]
) -> Card:
    """Show what alignment did, and tables of aligned parameters and of label-free quantities."""
    words = [Words(sentence) for sentence in sentences]
    words += [Words(sentence, flag="warn") for sentence in warnings]
    return Card("Modulo its symmetry", (*words, *tables))
