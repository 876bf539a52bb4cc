"""A loop over cases fails where a case does, and goes through the others all the same."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from .looped import looped


def test_every_case_is_tried_and_those_that_fail_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    @looped(("one", "other"), [(1, 1), (1, 2), (3, 3), (4, 5)])
    def same(one: int, other: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tried.append(one)
        (tmp_path / "once").touch(exist_ok=False)
        monkeypatch.setenv("ONEBASIN_CASE", str(one))
        assert one == other

    assert list(inspect.signature(same).parameters) == ["tmp_path", "monkeypatch"]
    with pytest.raises(AssertionError) as failed:
        same(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert tried == [1, 1, 3, 4]
    told = str(failed.value)
    assert "{'one': 1, 'other': 2}" in told and "{'one': 4, 'other': 5}" in told
    assert "'one': 3" not in told


def test_an_argument_that_the_test_does_not_have_is_refused() -> None:
    with pytest.raises(AssertionError, match="lacks a name"):
        looped("two", [1])(lambda one: None)
