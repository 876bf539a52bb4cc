"""Alignments and failure rates as cards: what was done to the draws, and how often that goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from onebasin.base.card import Card, Facts, Flag, Part, Table, Words, number
from onebasin.models.symmetry.elements import labels_of
from onebasin.models.symmetry.telling import in_words

if TYPE_CHECKING:
    from onebasin.truth.alignment_failures import FailureRates

    from .between import Barriers
    from .result import Alignment
    from .transpositions import Transpositions

MOST = 12
"""Rows of a table."""


def of_alignment(alignment: Alignment) -> Card:
    """What was moved and how much that brought, then the rule."""
    flag: Flag = "" if alignment.converged else "warn"
    return Card("Aligned draws", tuple(_of_alignment(alignment)), flag)


def _of_alignment(alignment: Alignment) -> Iterator[Part]:
    moved, draws = _moved(alignment), alignment.distance_after.size
    before, after = alignment.distance_before.mean(), alignment.distance_after.mean()
    what = (
        "No draw had to be moved"
        if moved == 0
        else f"{100 * moved:.3g} % of {draws:,} draws were moved"
    )
    closer = (
        f": their squared distance to the reference is {after / before:.2g} of what it was"
        if moved
        else ""
    )
    yield Words(
        f"{what}{closer}. `.posterior` holds the aligned draws, and `ob.diagnose` judges them."
    )
    if not alignment.converged:
        yield Words(
            f"Parts still moved in the last of {alignment.sweeps} sweeps: give more with `max_sweeps`.",
            flag="warn",
        )
    yield Facts.of(
        ("modulo", in_words(alignment.symmetry)),
        ("found", ", ".join(f"`{word}`" for word in alignment.found)),
        ("sweeps", str(alignment.sweeps)),
    )
    if alignment.caveat:
        yield Words(alignment.caveat, small=True)
    yield Words(alignment.text, small=True)


def _moved(alignment: Alignment) -> float:
    """Share of the draws whose labels alignment changed."""
    lead = alignment.distance_after.shape
    changed = np.zeros(lead, bool)
    for part, none in zip(alignment.element, alignment.group.identity(lead), strict=True):
        changed |= (labels_of(part) != labels_of(none)).any(axis=(-2, -1))
    return float(changed.mean())


def of_failure_rates(rates: FailureRates) -> Card:
    """How often each rule is wrong, beside the best there is."""
    planted = rates.planted
    means = {name: shares.mean(axis=0) for name, shares in rates.rates.items()}
    best = rates.optimal.mean(axis=0)
    order = np.argsort(rates.separations)
    signs = ", which may change sign," if planted.flips else ""
    lead = (
        f"Share of draws whose labels come out wrong, where {planted.components} components{signs} lie so many "
        "standard deviations apart. In the long run no rule does better than the last column: what lies above it is "
        "the rule's own failure, and the rest is overlap."
    )
    rows = tuple(
        (number(rates.separations[i]), *(_percent(share[i]) for share in (*means.values(), best)))
        for i in order[:MOST]
    )
    of = f"{planted.repeats} posteriors of {planted.draws:,} draws, seed {planted.seed}"
    more = f", the first {MOST} of {len(order)}" if len(order) > MOST else ""
    names = tuple(_RULES.get(name, name) for name in means)
    table = Table(
        f"separation: draws labelled wrongly ({of}){more}",
        (*names, "best possible"),
        rows,
        words=True,
    )
    return Card("How often alignment is wrong", (Words(lead), table))


def of_barriers(found: Barriers) -> Card:
    """How far the loss rises between networks, before and after alignment."""
    sides = {"as they came": found.as_they_came, "aligned": found.aligned}
    rows = tuple(
        (name, *(number(q) for q in np.quantile(side.height, (0.5, 0.9, 1.0))))
        for name, side in sides.items()
    )
    table = Table(
        "rise of the loss, nats an observation", ("median", "90 %", "largest"), rows, words=True
    )
    return Card("Barriers between draws", (Words(found.sentence), table))


def of_transpositions(found: Transpositions) -> Card:
    """How many exchanges of two parts brought draws into one labelling."""
    total = found.total.ravel()
    words = (
        f"Draws are {number(np.median(total))} transpositions (median) from the common labelling, and up to "
        f"{number(total.max())}: exchanges of two parts each."
    )
    rows = tuple(
        (f"block {place}", number(np.median(layer)), number(layer.max()))
        for place, layer in enumerate(found.layers)
    )
    table = (
        (Table("transpositions by block", ("median", "most"), rows, words=True),)
        if len(rows) > 1
        else ()
    )
    return Card("Transpositions", (Words(words), *table))


_RULES = {"draw": "one draw", "mean": "mean", "gaussian": "Gaussian", "posterior": "true mean"}


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"
