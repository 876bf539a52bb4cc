"""Chains and threads are as many as the cores that a scheduler has left to the process."""

from __future__ import annotations

import os
import threading
import time

import numpy as np

from onebasin.analysis.alignment.draws import workers
from onebasin.base.cores import available_cores
from onebasin.inference.mcmc.chains import run_chains
from onebasin.inference.mcmc.places import ChainPlace, Gathered

from ..each import each


@each("given", [1, 3])
def test_cores_of_the_process_count_and_not_the_machines(given, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(given)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert available_cores() == given
    with workers() as pool:
        assert pool.count == given


def test_chains_take_turns_on_one_core(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    at_once, most = 0, 0

    def run(place: ChainPlace, cancel: threading.Event) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.01)
        at_once -= 1
        place.put(0, {"x": np.zeros(2)}, {})

    run_chains(lambda: run, Gathered(4, 2), chains=4, draws=2)
    assert most == 1
