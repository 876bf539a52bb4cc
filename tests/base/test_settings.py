"""Settings: what is refused, in which words, and what is kept as it was given."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Literal

import pytest

from onebasin.base.settings import (
    Count,
    NonNegative,
    Positive,
    Probability,
    Share,
    descriptions,
    given_or_default,
    settings,
)
from onebasin.inference import Advi, Ensemble, Hmc, Nuts, Symmetrised, Train

from ..each import each


@settings
class Plain:
    """A settings class.

    Parameters
    ----------
    count, size : int
        How many,
        and how large.
    word : {"one", "two"}
        Which.
    """

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
    """Another.

    Parameters
    ----------
    further : int
        One more.
    """

    further: Count = 1


@pytest.mark.usefixtures("unchecked")
@each(
    ("name", "value", "rule"),
    [
        ("count", 0, "be a whole number of at least 1"),
        ("count", 2.0, "be a whole number of at least 1"),
        ("count", True, "be a whole number of at least 1"),
        ("count", "3", "be a whole number of at least 1"),
        ("count", None, "be a whole number of at least 1"),
        ("size", 0, "be a whole number of at least 1"),
        ("above", 0, "be a positive finite number"),
        ("above", math.inf, "be a positive finite number"),
        ("above", math.nan, "be a positive finite number"),
        ("above", True, "be a positive finite number"),
        ("least", -0.1, "be a finite number of at least 0"),
        ("inside", 1, "lie between 0 and 1"),
        ("inside", math.nan, "lie between 0 and 1"),
        ("share", 1.1, "be a share from 0 to 1"),
        ("further", -1, "be a whole number of at least 1"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(name: str, value: object, rule: str) -> None:
    with pytest.raises(ValueError) as caught:
        replace(More(), **{name: value})
    default = getattr(More(), name)
    assert str(caught.value) == f"`{name}` must {rule}; got {value!r}. The default is {default!r}."
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.usefixtures("unchecked")
def test_unknown_words_types_and_fields_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`word` is 'tow'; choose one of one, two. Did you mean"):
        Plain(word="tow")
    with pytest.raises(TypeError, match=r"`word` must be text, one of one, two; got 3"):
        Plain(word=3)
    with pytest.raises(ValueError, match="`sure` must be true or false; got 'yes'"):
        Plain(sure="yes")
    with pytest.raises(TypeError, match=r"Plain has no field `counts`; it has count, size, word"):
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


def test_descriptions_come_from_the_docstrings() -> None:
    with pytest.raises(KeyError, match="above"):
        descriptions(Plain)

    @settings
    class Described(Plain):
        """All of them.

        Parameters
        ----------
        above, least, inside, share, sure : float
            Numbers.
        further : int
            One more.
        """

        further: Count = 1

    found = descriptions(Described)
    assert found["count"] == found["size"] == "How many, and how large."
    assert found["further"] == "One more."
    assert list(found)[-1] == "further"


def test_a_docstring_stays_as_it_is_written() -> None:
    text = More.__doc__ or ""
    assert text.startswith("Another.") and "further : int" in text
    assert "count, size : int" not in text


@each("cls", [Nuts, Hmc, Advi, Train, Ensemble, Symmetrised])
def test_every_field_of_every_method_is_described(cls: type) -> None:
    assert all(len(text) > 5 and text.endswith(".") for text in descriptions(cls).values())


def test_settings_of_another_class_are_refused():
    class Mine:
        pass

    class Other:
        pass

    class Derived(Mine):
        pass

    assert isinstance(given_or_default(None, Mine, taker="nuts"), Mine)
    for given in (Mine(), Derived()):
        assert given_or_default(given, Mine, taker="nuts") is given
    for given, what in (
        (Other(), "of class Other"),
        ({}, "of class dict"),
        (0, "of class int"),
        (Mine, "the class Mine itself"),
    ):
        with pytest.raises(
            TypeError, match=rf"`settings` is {what}, but nuts takes Mine; give Mine\(\.\.\.\)"
        ):
            given_or_default(given, Mine, taker="nuts")
