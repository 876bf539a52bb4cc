"""Covering arrays: few combinations of values in which any few axes meet in every way."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any


def covering(axes: dict[str, Iterable[Any]], strength: int) -> list[dict[str, Any]]:
    """Choose few combinations in which all values of any `strength` axes meet: greedy, and always the same.

    Every row takes, of all combinations, the first that brings most meetings not seen before.
    """
    names = list(axes)
    every = list(product(*(list(values) for values in axes.values())))

    def meetings(row: tuple) -> set[tuple]:
        return {
            (places, tuple(map(repr, (row[p] for p in places))))
            for places in combinations(range(len(names)), strength)
        }

    due: set[tuple] = set().union(*map(meetings, every))
    chosen = []
    while due:
        best = max(every, key=lambda row: len(due & meetings(row)))
        due -= meetings(best)
        chosen.append(dict(zip(names, best, strict=True)))
    return chosen
