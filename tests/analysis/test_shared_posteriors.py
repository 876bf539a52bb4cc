"""The posteriors that tests share are the cases they are named for: checked by exact numbers and by their answers."""

import numpy as np
import xarray as xr

import onebasin as ob

from ..shared_posteriors import MAKERS

ANSWERS = {
    "mixture": "aligned",
    "schools": "usable",
    "network": "aligned",
    "regression": "usable",
    "fit": "usable",
    "two_modes": "unusable",
}


def test_each_gets_the_answer_it_was_made_for(shared):
    assert {name: ob.diagnose(shared.path(name)).verdict for name in MAKERS} == ANSWERS


def test_each_is_made_once_and_loaded_as_a_copy(shared):
    before = shared.path("two_modes").stat().st_mtime_ns
    tree = shared.load("two_modes")
    assert isinstance(tree, xr.DataTree)
    tree["posterior"]["x"].values[:] = 0
    assert np.ptp(shared.load("two_modes")["posterior"]["x"].values) > 10
    assert shared.path("two_modes").stat().st_mtime_ns == before
