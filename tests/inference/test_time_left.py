"""What is left of several chains: prices of warmup and draws apart, chains that wait, what was kept before."""

import pytest

from onebasin.base.time_left import TimeLeft, in_words

from ..each import each


def test_nothing_is_foretold_of_next_to_nothing():
    clock = TimeLeft(chains=1, warmup=100, draws=100, at_once=1)
    assert clock.left(0.0) is None
    clock.begin(0, 0, 0.0)
    clock.look(0, 10, 1.0)
    assert clock.left(1.0) is None
    clock.look(0, 100, 10.0)  # time passes between looks
    assert clock.left(10.0) == pytest.approx(10.0)
    assert clock.left(13.0) == pytest.approx(7.0)
    assert clock.left(30.0) == 0.0


def test_chains_that_wait_begin_as_those_at_work_end():
    clock = TimeLeft(chains=4, warmup=100, draws=100, at_once=2)
    for chain in range(2):
        clock.begin(chain, 0, 0.0)
    clock.look(0, 100, 10.0)
    clock.look(1, 50, 10.0)
    # 0.1 s and 0.2 s an iteration of the warmup, so far; draws, of which there are none, at that of the chain which is
    # to draw next, or at the mean of both
    first, second = 100 * 0.1, 50 * 0.2 + 100 * 0.15
    fresh = 100 * 20 / 150 + 100 * 0.15
    assert clock.left(10.0) == pytest.approx(max(first + fresh, second + fresh))
    assert clock.done == 150
    assert clock.total == 800


def test_a_slow_chain_decides_where_all_are_at_work():
    clock = TimeLeft(chains=2, warmup=100, draws=100, at_once=2)
    for chain in range(2):
        clock.begin(chain, 0, 0.0)
    for done in range(100, 161, 20):
        clock.look(0, done, done / 10)
        clock.look(1, min(done, 120), done / 10)
    # 20 draws took 2 s; since then the second chain has not been heard of for 4 s
    assert clock.left(16.0) == pytest.approx(max(4.0, 8.0 - 4.0))


@each(("seconds", "words"), [(0.4, "0 s"), (90, "90 s"), (150, "2 min"), (7800, "2 h 10 min")])
def test_times_are_said_as_people_do(seconds, words):
    assert in_words(seconds) == words
