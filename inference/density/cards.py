"""The check of a symmetry as a card: whether it holds, by how much at most, and what was not checked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from onebasin.base.card import Card, Fact, Facts, Part, Words

if TYPE_CHECKING:
    from .symmetry import SymmetryCheck


def of_check(check: SymmetryCheck) -> Card:
    """The answer, a line for each block, what was left open."""
    parts = tuple(_of_check(check))
    if not check.differences:
        return Card("No symmetry is declared", parts)
    if any(map(math.isnan, check.differences)):
        return Card("Not every part of the symmetry could be checked", parts, "warn")
    return Card("The symmetry holds", parts, "good")


def _of_check(check: SymmetryCheck) -> Iterator[Part]:
    if not check.differences:
        yield Words("There is nothing to hold against the log density.")
        return
    known = [difference for difference in check.differences if not math.isnan(difference)]
    if known:
        change = f"changes the log density by {max(known):.2g} nats at most, which is rounding,"
        if not max(known):
            change = "does not change the log density"
        yield Words(f"Moving parts as declared {change} {check.evidence.size}.")
    names = [block.describe() for block in check.symmetry] or ["block"] * len(check.differences)
    yield Facts(
        tuple(
            Fact(name, "no point tells", "warn")
            if math.isnan(difference)
            else Fact(name, f"{difference:.2g} nats at most", "good")
            for name, difference in zip(names, check.differences, strict=True)
        )
    )
    derived = check.evidence.derived
    if derived:
        yield Words(f"Moved along as declared: {', '.join(f'`{name}`' for name in derived)}.")
    if check.evidence.sentence:
        yield Words(check.evidence.sentence, small=True)
