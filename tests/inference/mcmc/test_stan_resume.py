"""Chains of Stan that were killed go on from what they have written: no whole row is lost, no cut one is taken."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.errors import RunCancelled, StanRunError
from onebasin.inference.mcmc import stan
from onebasin.inference.runs.checkpoint import kept_draws
from onebasin.posteriors import schema

from ..known import MEAN, RATE, SHAPE, assert_mean, known_target

pytestmark = pytest.mark.stan
SETTINGS = ob.Nuts(chains=1, warmup=150, draws=300)


class Killed(BaseException):
    """Ends a run as a SIGKILL does: nobody tidies up."""


@pytest.fixture
def after(monkeypatch):
    """Give a function that has something done to a program's CSV file when it has ended."""

    def after(change):
        def run(program, arguments, folder, *, cancel, watch=None):
            printed = real(program, arguments, folder, cancel=cancel, watch=watch)
            if watch is None:  # a search for a start
                return printed
            (csv,) = (word.removeprefix("file=") for word in arguments if word.endswith(".csv"))
            change(Path(csv))
            return printed

        monkeypatch.setattr(stan, "run", run)

    real = stan.run
    return after


@pytest.fixture
def kill(after):
    """Give a function that lets a program be killed when it has written so much of names and draws.

    Of several chains, which run in threads, the last to end is killed: the others have written all of theirs.
    """

    def at(share: float, chains: int = 1) -> None:
        ends = itertools.count(1)

        def cut(csv):
            if next(ends) == chains:
                content = csv.read_bytes()
                # Of names to draws: comments before and times after them are not equally long each time.
                begin, end = content.index(b"lp__"), content.index(b"#  Elapsed")
                csv.write_bytes(content[: begin + int(share * (end - begin))])
                raise Killed

        after(cut)

    return at


def sampled(folder: Path | None, settings=SETTINGS, engine: str = "cmdstan") -> xr.DataTree:
    return ob.infer(known_target("stan"), settings, engine=engine, seed=3, checkpoint=folder)


def values(tree: xr.DataTree) -> dict[str, np.ndarray]:
    groups = (tree["posterior"], tree["sample_stats"])
    return {name: v.to_numpy() for group in groups for name, v in group.data_vars.items()}


def restarts(tree: xr.DataTree) -> list[list[int]]:
    return json.loads(tree.attrs.get(schema.RESTARTS, "[[]]"))


def test_interpreted_chains_that_were_killed_end_as_undisturbed_ones(tmp_path, after):
    """Their files appear whole: a chain is finished, has written all, or begins again."""
    settings, again = ob.Nuts(chains=3, warmup=150, draws=300), []
    whole = values(sampled(None, settings, "stanli"))

    def die(csv):
        if "chain-0" not in str(csv):
            if "chain-1" in str(csv):
                csv.unlink()
            raise Killed

    after(die)
    with pytest.raises(Killed):
        sampled(tmp_path, settings, "stanli")
    after(lambda csv: again.append(csv.parent.name))
    found = sampled(tmp_path, settings, "stanli")
    assert "chain-1" in again
    assert restarts(found) == [[]]
    for name, draws in values(found).items():
        np.testing.assert_array_equal(draws, whole[name])


@pytest.mark.cmdstan
def test_a_chain_killed_anywhere_keeps_every_whole_row(tmp_path, kill):
    """Before the names, in the adaptation, amid a row, before the times at the end."""
    whole = values(sampled(None))
    seen = set()
    for share in (0.0, 0.02, 0.37, 0.8, 1.0):
        kill(share)
        with pytest.raises(Killed):
            sampled(tmp_path / str(share))
        tree = sampled(tmp_path / str(share))
        found, (again,) = values(tree), restarts(tree)
        kept = again[0] if again else 300
        seen.add(kept)
        for name, draws in whole.items():
            assert draws.dtype == found[name].dtype
            np.testing.assert_array_equal(draws[:, :kept], found[name][:, :kept])
        assert not again or not np.array_equal(whole["x"][:, kept:], found["x"][:, kept:])
        assert len(set(found["step_size"][0])) == 1
    assert len(seen) > 3


@pytest.mark.cmdstan
def test_a_chain_that_goes_on_samples_the_same_posterior(tmp_path, kill):
    settings = ob.Nuts(chains=1, warmup=300, draws=2500)
    for share in (0.1, 0.3):
        kill(share)
        with pytest.raises(Killed):
            sampled(tmp_path, settings)
    tree = sampled(tmp_path, settings)
    ((first, second),) = restarts(tree)
    assert 0 < first < second < 2500
    rest = tree["posterior"].isel(draw=slice(first, None))
    for i in range(2):
        assert_mean(rest["x"].to_numpy()[..., i], MEAN[i])
    assert_mean(rest["tau"].to_numpy(), SHAPE / RATE)
    assert json.loads(tree.attrs[schema.SAMPLING_SECONDS])[0] > 0


@pytest.mark.cmdstan
@pytest.mark.parametrize(
    "method", [ob.Nuts(metric="dense", init="optimum"), ob.Hmc(metric="unit")], ids=["nuts", "hmc"]
)
def test_other_metrics_and_methods_go_on(tmp_path, kill, method):
    settings = type(method)(chains=2, warmup=150, draws=200, metric=method.metric, init=method.init)
    kill(0.8, settings.chains)
    with pytest.raises(Killed):
        sampled(tmp_path, settings)
    tree = sampled(tmp_path, settings)
    (again,) = filter(None, restarts(tree))
    assert 0 < again[0] < 200
    steps = tree["sample_stats"]["step_size"].to_numpy()
    assert [len(set(chain)) for chain in steps] == [1, 1]
    assert tree["posterior"]["x"].shape == (2, 200, 2)
    assert np.isfinite(tree["posterior"]["x"].to_numpy()).all()


@pytest.mark.cmdstan
def test_more_draws_go_on_from_those_that_are_there(tmp_path):
    few = values(sampled(tmp_path))
    tree = sampled(tmp_path, ob.Nuts(chains=1, warmup=150, draws=400))
    assert restarts(tree) == [[300]]
    np.testing.assert_array_equal(values(tree)["x"][:, :300], few["x"])
    assert values(tree)["x"].shape == (1, 400, 2)


@pytest.mark.cmdstan
def test_a_chain_that_is_stopped_keeps_what_it_has(tmp_path, after):
    def stop(csv):
        raise RunCancelled("stopped")

    after(stop)
    with pytest.raises(RunCancelled):
        sampled(tmp_path)
    assert kept_draws(tmp_path) == [300]
    assert not list(tmp_path.glob("chain-0/stan-*"))


@pytest.mark.cmdstan
def test_a_file_that_a_full_disk_cut_is_an_error_and_goes_on_when_there_is_room(tmp_path, after):
    after(lambda csv: csv.write_bytes(csv.read_bytes()[: csv.stat().st_size // 2]))
    with pytest.raises(StanRunError, match=r"of 300 draws"):
        sampled(tmp_path)
    after(lambda csv: None)
    assert restarts(sampled(tmp_path))[0]
