"""What labels do is said of the block that moves them, whatever kind it is."""

from __future__ import annotations

import pytest

from onebasin.analysis.diagnostics.answers import labels_move
from onebasin.analysis.diagnostics.labels import Labels
from onebasin.analysis.diagnostics.measure import gather, measure
from onebasin.models.symmetry.blocks import Complement, Exchangeable, Flip
from onebasin.models.symmetry.whole import Whole
from onebasin.models.symmetry.words import spell
from onebasin.posteriors.view import as_view

from ...each import each


class Swap(Whole):
    """Whole variables that change places."""

    kind = "swap"
    variables = ("a", "b")
    complemented = ()

    def describe(self) -> str:
        return "a and b change places"

    def restricted(self, names: object) -> Swap:
        return self


@each(
    ("block", "says"),
    [
        (Exchangeable({"a": 0, "b": 0}), "The components of `a` and `b` change places"),
        (Flip(("a", "b")), "`a` and `b` change sign together"),
        (Complement(("a", "b")), "`a` and `b` or 1 minus them cannot be told apart"),
        (Swap(), "The components of `a` and `b` change places"),
    ],
)
def test_sentence_is_of_the_kind_of_block(block, says, rng):
    draws = {"a": rng.normal(size=(2, 20, 2)), "b": rng.normal(size=(2, 20, 2))}
    view = as_view(draws)
    labels = Labels("switch", gather(view, measure(view)), declared=(block,))
    assert labels_move(labels).fact == says


def test_block_of_somebodys_own_has_no_word():
    with pytest.raises(ValueError, match="which the command line has no word for"):
        spell(Swap())
