"""What is left of a study: cells priced by those like them, and as many at once as the clock shows."""

import time

import pytest

from onebasin.studies.lab.cells import Cell
from onebasin.studies.lab.driver import StudyProgress, seconds_left
from onebasin.studies.lab.making import MadeCell

NUTS = [Cell("free", "nuts", "numpyro", None, 0, split=i) for i in range(4)]
FIT = Cell("free", "meanfield", "stan", None, 0)


def left(cells, passed, *made):
    return seconds_left(cells, {one.cell.key: one for one in made}, passed)


def test_cells_take_as_long_as_those_like_them():
    cells, first = [*NUTS, FIT], MadeCell(NUTS[0], seconds=300.0)
    assert left(cells, 0.0) is None
    assert left(cells, 300.0, first) == pytest.approx(4 * 300.0)  # of the fit nothing is known
    assert left(cells, 320.0, first, MadeCell(FIT, seconds=20.0)) == pytest.approx(3 * 300.0)


def test_several_at_once_are_known_by_the_clock():
    made = [MadeCell(cell, seconds=300.0) for cell in NUTS[:2]]
    assert left(NUTS, 300.0, *made) == pytest.approx(300.0)


def test_what_was_there_tells_a_price_but_not_how_many_are_at_once():
    made = MadeCell(NUTS[0], seconds=300.0, found=True)
    assert left(NUTS, 1.0, made, MadeCell(NUTS[1], failure="a disk was full")) == pytest.approx(600)


def test_little_is_not_said():
    for seconds, words in ((3.0, ""), (450.0, ", about 15 min left")):
        now = time.monotonic()
        state = StudyProgress(tuple(NUTS[:3]), print, started=now - seconds)
        state.ended[NUTS[0].key] = MadeCell(NUTS[0], seconds=seconds)
        assert state.left == words
