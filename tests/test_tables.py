"""Tables of cases report every case that fails, keep cases apart, and cover what they promise."""

from __future__ import annotations

import inspect
import os
from itertools import combinations, product

import numpy as np
import pytest

from .tables import covering, each


def test_every_case_that_fails_is_named_and_the_others_still_run():
    ran = []

    @each("value", [1, 2, 3, 4], ids=["one", "two", "three", "four"])
    def check(value):
        ran.append(value)
        if value == 2:
            pytest.fail("even")
        if value == 4:
            with pytest.raises(ValueError):
                pass
        assert value != 3

    with pytest.raises(
        AssertionError, match=r"3 of 4 fail[\s\S]*two: Failed: even[\s\S]*three: [\s\S]*four: "
    ):
        check()
    assert ran == [1, 2, 3, 4]


def test_nested_tables_try_every_pair_and_ask_for_fixtures_alone():
    ran = []

    @each("a, b", [(1, 2), (3, 4)])
    @each("c", "xy")
    def check(a, b, c, rng):
        ran.append((a, b, c, rng.integers(10**9)))

    assert list(inspect.signature(check).parameters) == ["rng"]
    rng = np.random.default_rng(1)
    check(rng=rng)
    drawn = np.random.default_rng(1).integers(10**9)
    assert ran == [(a, b, c, drawn) for a, b in ((1, 2), (3, 4)) for c in "xy"]
    assert rng.integers(10**9) == drawn


def test_cases_have_their_own_folders_and_patches(tmp_path, monkeypatch):
    monkeypatch.setenv("WORD", "before")

    @each("value", [1, 2])
    def check(value, tmp_path, monkeypatch):
        assert not list(tmp_path.iterdir())
        (tmp_path / "file").touch()
        assert os.environ["WORD"] == "before"
        monkeypatch.setenv("WORD", "after")

    check(tmp_path=tmp_path, monkeypatch=monkeypatch)


def test_tables_without_cases_and_unknown_arguments_are_refused():
    with pytest.raises(ValueError, match="`value` has 0 cases"):
        each("value", [])
    with pytest.raises(AssertionError, match="other"):
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
