"""The posteriors that tests share are the cases they are named for: checked by exact numbers and by their answers."""

import numpy as np

import onebasin as ob

from ..shared_posteriors import MAKERS


def test_each_gets_the_answer_it_was_made_for(shared):
    answers = {"mixture": "aligned", "network": "aligned", "regression": "usable"}
    assert {name: ob.diagnose(shared.path(name)).verdict for name in MAKERS} == answers


def test_each_is_made_once_and_loaded_as_a_copy(shared):
    before = shared.path("mixture").stat().st_mtime_ns
    shared.load("mixture")["posterior"]["mu"].values[:] = 0
    assert np.ptp(shared.load("mixture")["posterior"]["mu"].values) > 1
    assert shared.path("mixture").stat().st_mtime_ns == before
