"""A loop of cases runs them all, tells every one that fails, and keeps them apart."""

import os

import pytest

from .each import each


def test_every_failing_case_is_told():
    ran = []

    @each("value", [1, 2, 3])
    @each("other", ["a", "b"])
    def one(value, other, rng_like):
        ran.append((value, other))
        with pytest.raises(ValueError, match="two"):
            raise ValueError("two" if value == 2 else rng_like)

    with pytest.raises(pytest.fail.Exception) as failure:
        one(rng_like="no")
    assert len(ran) == 6
    assert "4 of 6 cases" in str(failure.value)
    assert "{'other': 'a', 'value': 1}" in str(failure.value)
    assert "'value': 2" not in str(failure.value)


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
