"""What is left of a study: cells priced by those like them, and as many at once as the clock shows."""

import pytest

from onebasin.studies.lab.cells import Cell
from onebasin.studies.lab.making import MadeCell
from onebasin.studies.lab.time_left import StudyTimeLeft


def cells():
    sampled = [Cell("free", "nuts", "numpyro", None, 0, split=i) for i in range(4)]
    return [*sampled, Cell("free", "meanfield", "stan", None, 0)]


def test_cells_take_as_long_as_those_like_them():
    nuts = cells()
    clock = StudyTimeLeft(nuts, started=100.0)
    assert clock.left(100.0) is None
    assert clock.words(100.0) == ""
    clock.end(MadeCell(nuts[0], seconds=300.0))
    assert clock.left(400.0) == pytest.approx(
        4 * 300.0
    )  # the fit as all others: nothing is known of it
    clock.end(MadeCell(nuts[4], seconds=20.0))
    assert clock.left(420.0) == pytest.approx(3 * 300.0)
    assert clock.words(420.0) == ", about 15 min left"


def test_several_at_once_are_known_by_the_clock_and_little_is_not_said():
    nuts = cells()[:4]
    clock = StudyTimeLeft(nuts, started=0.0)
    for made in nuts[:2]:
        clock.end(MadeCell(made, seconds=300.0))
    assert clock.left(300.0) == pytest.approx(300.0)
    clock = StudyTimeLeft(nuts[:2], started=0.0)
    clock.end(MadeCell(nuts[0], seconds=3.0))
    assert (clock.left(3.0), clock.words(3.0)) == (pytest.approx(3.0), "")


def test_what_was_there_tells_a_price_but_not_how_many_are_at_once():
    nuts = cells()[:4]
    clock = StudyTimeLeft(nuts, started=0.0)
    clock.end(MadeCell(nuts[0], seconds=300.0, found=True))
    clock.end(MadeCell(nuts[1], failure="a disk was full"))
    assert clock.left(1.0) == pytest.approx(600.0)
