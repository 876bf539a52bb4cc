"""The gap to the symmetric mixture as a card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from onebasin.base.card import Card, Part, Table, Words, measured, number

if TYPE_CHECKING:
    from .gap import MixtureGap


def of_gap(gap: MixtureGap) -> Card:
    """How large it is, what that means, and each layer's part."""
    if gap.layers.empty:
        words = (
            "The target has no interchangeable parts, so that its only mode is mixed with nothing."
        )
        return Card("There is no mixture to compare with", (Words(words),))
    total = gap.total
    value = f"{number(total.lower, 4)} to {number(total.upper, 4)} nats"
    return Card(f"Gap to the symmetric mixture: {value}", tuple(_parts(gap)))


def _parts(gap: MixtureGap) -> Iterator[Part]:
    total = gap.total
    yield Words(
        f"So much higher than the Gaussian's own ELBO is that of its mixture over the symmetry: at least "
        f"{measured(total.lower, total.lower_mcse)}, at most {measured(total.upper, total.upper_mcse)}, and never more "
        f"than {number(gap.log_order, 4)}."
    )
    yield Words("It is zero where all units are alike, and largest where all of them are apart.")
    heads = ("units", "gap ≥", "gap ≤", "most")
    rows = tuple(
        (row.layer, str(row.units), *(number(v, 4) for v in (row.lower, row.upper, row.log_order)))
        for row in gap.layers.itertuples()
    )
    yield Table("each layer's part, nats", heads, rows, words=True)
