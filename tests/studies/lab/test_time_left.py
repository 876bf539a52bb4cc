"""What is left of a study: cells priced by those like them, and as many at once as the clock shows."""

import time

import pytest

from onebasin.studies.lab.cells import Cell
from onebasin.studies.lab.driver import StudyProgress, seconds_left
from onebasin.studies.lab.making import MadeCell

from ...each import each

NUTS = [Cell("free", "nuts", "numpyro", None, 0, split=i) for i in range(4)]
FIT = Cell("free", "meanfield", "stan", None, 0)


def done(cell, *, seconds=300.0, **how):
    return MadeCell(cell, seconds=seconds, **how)


@each(
    ("cells", "passed", "made", "seconds"),
    [
        ([*NUTS, FIT], 0.0, [], None),
        ([*NUTS, FIT], 300.0, [done(NUTS[0])], 4 * 300.0),  # of the fit nothing is known
        ([*NUTS, FIT], 320.0, [done(NUTS[0]), done(FIT, seconds=20.0)], 3 * 300.0),
        (NUTS, 300.0, [done(cell) for cell in NUTS[:2]], 300.0),  # two at once, by the clock
        # What was there tells a price, but not how many are at once.
        (NUTS, 1.0, [done(NUTS[0], found=True), MadeCell(NUTS[1], failure="a full disk")], 600.0),
    ],
)
def test_cells_take_as_long_as_those_like_them(cells, passed, made, seconds):
    left = seconds_left(cells, {one.cell.key: one for one in made}, passed)
    assert left == (seconds if seconds is None else pytest.approx(seconds))


def test_little_is_not_said():
    for seconds, words in ((3.0, ""), (450.0, ", about 15 min left")):
        now = time.monotonic()
        state = StudyProgress(tuple(NUTS[:3]), print, started=now - seconds)
        state.ended[NUTS[0].key] = MadeCell(NUTS[0], seconds=seconds)
        assert state.left == words
