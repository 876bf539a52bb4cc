"""Chains and threads are as many as the cores that a scheduler has left to the process."""

from __future__ import annotations

import os

import pytest

from onebasin.analysis.alignment.draws import workers
from onebasin.base.machine import available_cores


@pytest.mark.parametrize("given", [1, 3])
def test_cores_of_the_process_count_and_not_the_machines(given, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(given)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert available_cores() == given
    with workers() as pool:
        assert pool.count == given
