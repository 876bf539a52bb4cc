"""A chain that was killed continues to the draws of one that was not, bit for bit."""

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.processes.tasks import run_tasks
from onebasin.base.progress import ProgressBars
from onebasin.inference import Nuts
from onebasin.inference.contracts.method import Job
from onebasin.inference.mcmc import chains as chains_module
from onebasin.inference.mcmc.chains import Gathered, run_chains
from onebasin.inference.mcmc.numpyro import NumpyroChains, Runner

from ..known import known_target

WARMUP, DRAWS = 130, 170
SLICES = 3 + 4
"""Of a chain: 130 and 170 iterations, 50 at a time."""

SETTINGS = Nuts(chains=1, warmup=WARMUP, draws=DRAWS, metric="dense", dtype="float32")


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def _every_slice_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains_module, "SECONDS", 0.0)


@pytest.fixture(scope="module")
def runner() -> NumpyroChains:
    job = Job(known_target("numpyro"), SETTINGS, "numpyro", 3, ProgressBars(False))
    return NumpyroChains(job)


def run(runner: NumpyroChains, folder: Path | None, *, draws: int = DRAWS, ends: int = 99) -> dict:
    """Run a chain, which is killed at its slice number `ends`."""
    slices = iter(range(1, 100))

    class Dying(Runner):
        settings, bars, like = replace(SETTINGS, draws=draws), runner.bars, runner.like
        slices, start, adapted = runner.slices, runner.start, runner.adapted
        __call__ = NumpyroChains.__call__

        def advance(self, *arguments: object, **named: object) -> object:
            if next(slices) == ends:
                raise Killed
            return runner.advance(*arguments, **named)

    gathered = Gathered(1, draws)
    run_chains(Dying, gathered, chains=1, draws=draws, folder=folder, fingerprint="a")
    return {**gathered.draws, **gathered.stats}


def assert_same(found: dict, wanted: dict) -> None:
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.fixture(scope="module")
def undisturbed(runner: NumpyroChains) -> dict:
    return run(runner, None)


def test_a_chain_may_be_killed_in_every_slice(runner, undisturbed, tmp_path):
    for _ in range(SLICES - 1):
        with pytest.raises(Killed):
            run(runner, tmp_path, ends=2)
    assert_same(run(runner, tmp_path, ends=2), undisturbed)


def test_more_draws_go_on_from_those_that_are_there(runner, undisturbed, tmp_path):
    for first in (20, 50, 130):
        folder = tmp_path / str(first)
        begun = run(runner, folder, draws=first)
        assert_same(begun, {name: values[:, :first] for name, values in undisturbed.items()})
        assert_same(run(runner, folder), undisturbed)
        fewer = run(runner, folder, draws=70, ends=1)
        assert_same(fewer, {name: values[:, :70] for name, values in undisturbed.items()})


def test_a_chain_may_be_killed_while_it_writes(runner, undisturbed, tmp_path, monkeypatch):
    """As one of its files takes its name, before or after: a chunk or a state."""
    for when in ("before", "after"):
        for number in range(100):
            calls = iter(range(100))

            def replace(source, place, *, calls=calls, number=number, when=when):
                last = next(calls) == number % 3
                if last and when == "before":
                    raise Killed
                os.rename(source, place)
                if last:
                    raise Killed

            with monkeypatch.context() as patched:
                patched.setattr("onebasin.base.files.writing.os.replace", replace)
                try:
                    found = run(runner, tmp_path / when)
                    break
                except Killed:
                    continue
        assert number > SLICES
        assert_same(found, undisturbed)


class Cluster:
    """A stand-in for a Dask client, whose tasks run in this process."""

    def nthreads(self) -> dict[str, int]:
        return {"worker": 2}


@pytest.mark.parametrize("shared", [True, False])
def test_chains_of_a_cluster_are_those_of_home(shared, monkeypatch, tmp_path):
    """Groups of chains, of which some were there already; through the shared folder, or as files."""
    from onebasin.inference.mcmc import chains
    from onebasin.inference.runs import run as run_module

    def run_here(function, tasks, client, **how):
        return run_tasks(function, tasks, here=True, hear=how["hear"])

    def elsewhere(bars, job, numbers, folder, mark):
        return run_group(bars, job, numbers, folder if shared else tmp_path / "unseen", mark)

    run_group = chains.run_group
    monkeypatch.setattr(run_module, "run_tasks", run_here)
    monkeypatch.setattr(chains, "run_group", elsewhere)
    monkeypatch.setattr(chains, "connected", nullcontext)
    target = known_target("numpyro")
    how = {"warmup": 20, "draws": 10, "seed": 4, "symmetry": False}
    home = ob.nuts(target, chains=5, **how)
    ob.nuts(target, chains=2, checkpoint=tmp_path / "kept", **how)
    away = ob.nuts(target, chains=5, client=Cluster(), checkpoint=tmp_path / "kept", **how)
    for group in ("posterior", "sample_stats", "adaptation"):
        xr.testing.assert_equal(home[group].to_dataset(), away[group].to_dataset())
