"""Reading many random programs, against brute force."""

import pytest

from .programs import counted


@pytest.mark.slow
def test_nothing_false_is_read_from_many_rare_operations():
    assert counted(range(30_000, 30_500), odd=True)[2] == []


@pytest.mark.slow
def test_two_thousand_random_programs():
    total, found, false = counted(range(10_000, 11_500))
    more = counted(range(20_000, 20_500), steps=10, deep=True)
    assert false == more[2] == []
    assert found + more[1] >= 0.98 * (total + more[0])
