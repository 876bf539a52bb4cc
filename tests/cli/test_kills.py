"""Commands ended at two moments by two signals; `benchmarks/kills.py` does so a hundred times."""

import json
import sys
import time

import pytest

from ..command_fixtures import NORMAL
from .test_sample import DATA

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.mark.full
@pytest.mark.stan
def test_a_command_that_was_ended_leaves_nothing_and_loses_no_draw(tmp_path, kills):
    place = kills.Place(tmp_path / "place", own_cache=False)
    (tmp_path / "normal.stan").write_text(NORMAL)
    (tmp_path / "data.json").write_text(json.dumps(DATA))
    files = [str(tmp_path / name) for name in ("normal.stan", "data.json")]
    words = ["sample", *files, "--out", "out/run.nc", "--draws", "2000", "--no-progress"]
    words.append("--no-symmetry")
    seen = kills.Figures("sample")
    started = time.monotonic()
    assert place.start(words).wait(300) == 0, place.said()
    seconds, wanted = time.monotonic() - started, kills.draws(place.out)
    (place.out / "run.nc").unlink()
    for number, part in zip(kills.SIGNALS[:2], (0.5, 0.8), strict=True):
        kills.kill(place, words, number, part * seconds, seen)
    kills.run_on(place, words, seen, wanted)
    assert (seen.kills, seen.finished) == (2, 1)
    assert seen.failed == []
    assert seen.orphans == 0
    assert seen.leftovers == []
    assert seen.other_draws == 0
    assert (seen.wrong_codes, seen.silent) == ({}, 0)
