"""A NumPyro run, killed twenty times at random moments, goes on to the draws of an undisturbed one."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_draws(tmp_path, kills):
    place = kills.Place(tmp_path / "place", own_cache=False, first=kills.OFTEN)
    seen = kills.measure_numpyro(place, 20, seed=1)
    assert seen.kills == 20
    assert seen.finished >= 6
    assert seen.other_draws == 0
    assert (seen.failed, seen.leftovers, seen.orphans) == ([], [], 0)
    assert seen.phases["warmup"]
    assert seen.phases["sampling"]
