"""A NumPyro run, killed twenty times at random moments, goes on to the draws of an undisturbed one."""

import sys
from importlib import util
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def kills():
    path = Path(__file__).parents[2] / "benchmarks" / "kills.py"
    spec = util.spec_from_file_location("kills_numpyro", path)
    module = util.module_from_spec(spec)
    sys.modules["kills_numpyro"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["kills_numpyro"]


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
