"""Settings: what is rejected, in which words, and what is kept as it was given."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Literal

import pytest

from onebasin.base.settings import Count, NonNegative, Positive, Probability, Share, settings


@settings
class Plain:
    count: Count = 4
    size: Count | None = None
    word: Literal["one", "two"] = "one"
    above: Positive = 1.0
    least: NonNegative = 0.0
    inside: Probability = 0.5
    share: Share = 1.0
    sure: bool = False


@settings
class More(Plain):
    further: Count = 1


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("count", value) for value in (0, 2.0, True, "3", None)),
        ("size", 0),
        *(("above", value) for value in (0, math.inf, math.nan, True)),
        ("least", -0.1),
        *(("inside", value) for value in (0, 1, math.nan)),
        ("share", 1.1),
        ("further", -1),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{name}`") as caught:
        replace(More(), **{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.usefixtures("unchecked")
def test_unknown_words_types_and_fields_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`word` is 'tow'.*two"):
        Plain(word="tow")
    with pytest.raises(TypeError, match="`word`"):
        Plain(word=3)
    with pytest.raises(ValueError, match="`sure`"):
        Plain(sure="yes")
    with pytest.raises(TypeError, match=r"`counts`.*count, size, word"):
        Plain(counts=3)


def test_values_are_kept_as_they_were_given() -> None:
    kept = asdict(Plain(above=3, least=0, inside=0.25, share=1, size=2))
    assert [type(kept[name]) for name in ("above", "least", "inside", "share")] == [
        *(int, int, float, int)
    ]
    assert type(Plain(above=10**30).above) is float  # which no array holds as a whole number
    assert replace(Plain(), count=5) == Plain(5) != Plain()
    assert hash(Plain(5)) == hash(Plain(count=5))
    with pytest.raises(AttributeError, match="count"):
        Plain().count = 3
