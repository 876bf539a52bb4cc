"""What plots of labels show, in words: where every line lies, chain by chain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from onebasin.base.numbers import format_number

from ..report.seen import TWO_LEVELS, two_levels

LEVEL = 0.5
"""Share of a line's spread within chains by which medians may differ where chains are said to agree."""
CHAINS, LINES = 8, 4
"""Chains and lines up to which each is told."""


def lines_in_words(
    title: str,
    labels: Sequence[str],
    values: Float[np.ndarray, "chain draw line"],
    *,
    group: str = "chain",
    follow: bool = True,
) -> str:
    """Say where the lines of one row lie, and which of them jump where one draw follows from another."""
    told = [
        f"{label} {_where(values[..., place], group, follow)}"
        for place, label in enumerate(labels)
        if place < LINES
    ]
    more = f"; and {len(labels) - LINES} more" if len(labels) > LINES else ""
    alone = len(labels) == 1
    return f"{title}: {_where(values[..., 0], group, follow) if alone else '; '.join(told)}{more}."


def _where(values: Float[np.ndarray, "chain draw"], group: str, follow: bool) -> str:
    jumping = [chain for chain, draws in enumerate(values) if follow and _jumps(draws)]
    if jumping:
        low, high, _, _ = two_levels(values[jumping[0]])
        levels = f"between {format_number(low)} and {format_number(high)}"
        return f"jumps {levels} within {_chains(jumping, len(values), group)}"
    medians = np.median(values, axis=1)
    ends = np.quantile(values, [0.05, 0.95], axis=1)
    if np.ptp(medians) <= LEVEL * float(np.median(ends[1] - ends[0])):
        where = f" in every {group}" if len(values) > 1 else ""
        low, high = np.quantile(values, [0.05, 0.95])
        return f"lies between {format_number(float(low))} and {format_number(float(high))}{where}"
    if len(values) > CHAINS:
        span = f"{format_number(medians.min())} to {format_number(medians.max())}"
        return f"lies elsewhere from {group} to {group}, around {span}"
    levels = ", ".join(format_number(float(median)) for median in medians)
    return f"lies around {levels} in {group}s 0 to {len(values) - 1}"


def _jumps(draws: Float[np.ndarray, " draw"]) -> bool:
    if np.ptp(draws) == 0:
        return False
    _, _, share, upper = two_levels(draws)
    return share >= TWO_LEVELS and 0.02 < float(upper.mean()) < 0.98


def _chains(chains: Sequence[int], total: int, group: str) -> str:
    if len(chains) == total:
        return f"every {group}" if total > 1 else f"the {group}"
    if len(chains) > CHAINS:
        return f"{len(chains)} of {total} {group}s"
    return (f"{group} " if len(chains) == 1 else f"{group}s ") + ", ".join(map(str, chains))
