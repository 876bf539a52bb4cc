"""A loop over cases runs them all, names every case that fails, and keeps them apart; few rows cover all pairs."""

import inspect
import os
from itertools import combinations, product

import pytest

from .covering import covering
from .each import each


def test_every_failing_case_is_named_and_the_others_still_run():
    ran = []

    @each("value", [1, 2, 3])
    @each("other", ["a", "b"])
    def one(value, other, rng_like):
        ran.append((value, other))
        with pytest.raises(ValueError, match="two"):
            raise ValueError("two" if value == 2 else rng_like)

    assert list(inspect.signature(one).parameters) == ["rng_like"]
    with pytest.raises(pytest.fail.Exception) as failure:
        one(rng_like="no")
    assert len(ran) == 6
    assert "4 of 6 cases" in str(failure.value)
    assert "{'other': 'a', 'value': 1}" in str(failure.value)
    assert "'value': 2" not in str(failure.value)


def test_cases_have_their_names_and_tuples_their_parts():
    @each(("one", "other"), [(1, 1), (1, 2)], ids=["alike", "apart"])
    def same(one, other):
        if one != other:
            pytest.fail("unequal")

    with pytest.raises(pytest.fail.Exception, match=r"1 of 2 cases[\s\S]*apart:[\s\S]*unequal"):
        same()


@pytest.fixture
def seen():
    return []


@each("number", range(3))
def test_cases_have_their_own_randomness_folder_and_patches(
    number, rng, tmp_path, monkeypatch, seen
):
    assert "ONEBASIN_EACH" not in os.environ
    monkeypatch.setenv("ONEBASIN_EACH", "1")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    seen.append(rng.normal())
    assert seen == [seen[0]] * (number + 1)


def test_tables_without_cases_and_unknown_arguments_are_refused():
    with pytest.raises(AssertionError, match="no values of value"):
        each("value", [])
    with pytest.raises(AssertionError, match=r"does not take \{.other.\}"):
        each("other", [1])(lambda value: None)


def test_few_combinations_cover_every_meeting():
    axes = {"a": "xyz", "b": [1, 2], "c": [None, True], "d": range(4)}
    for strength in (2, 3):
        rows = covering(axes, strength)
        assert len(rows) < 48
        assert rows == covering(axes, strength)
        for names in combinations(axes, strength):
            met = {tuple(row[name] for name in names) for row in rows}
            assert met == set(product(*(axes[name] for name in names)))
