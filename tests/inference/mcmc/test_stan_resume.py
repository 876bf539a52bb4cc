"""Chains of CmdStan that were killed go on from what they have written: no whole row is lost, no cut one is taken."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.errors import RunCancelled
from onebasin.inference.mcmc import stan as engine
from onebasin.inference.runs.checkpoint import kept_draws
from onebasin.posteriors import schema
from onebasin.stan.home.errors import StanRunError

from ..known import MEAN, RATE, SHAPE, assert_mean, known_target

pytestmark = [pytest.mark.stan, pytest.mark.cmdstan]

SETTINGS = ob.Nuts(chains=1, warmup=150, draws=300)


class Killed(BaseException):
    """Ends a run as a SIGKILL does: nobody tidies up."""


@pytest.fixture
def after(monkeypatch):
    """Give a function that has something done to a program's CSV file when it has ended."""

    def after(change):
        def run(program, arguments, folder, *, cancel, watch):
            printed = real(program, arguments, folder, cancel=cancel, watch=watch)
            (csv,) = (word.removeprefix("file=") for word in arguments if word.endswith(".csv"))
            change(Path(csv))
            return printed

        monkeypatch.setattr(engine, "run", run)

    real = engine.run
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


def nuts(folder: Path | None, settings=SETTINGS, seed: int = 3) -> xr.DataTree:
    return ob.infer(known_target("stan"), settings, engine="cmdstan", seed=seed, checkpoint=folder)


def values(tree: xr.DataTree) -> dict[str, np.ndarray]:
    groups = (tree["posterior"], tree["sample_stats"])
    return {name: v.to_numpy() for group in groups for name, v in group.data_vars.items()}


def restarts(tree: xr.DataTree) -> list[list[int]]:
    return json.loads(tree.attrs.get(schema.RESTARTS, "[[]]"))


def test_a_chain_killed_anywhere_keeps_every_whole_row(tmp_path, kill):
    """Nine moments: before the names, in the adaptation, amid a row, before the times at the end."""

    def resumed(share: float, name: str) -> xr.DataTree:
        kill(share)
        with pytest.raises(Killed):
            nuts(tmp_path / name)
        return nuts(tmp_path / name)

    whole = values(nuts(None))
    rng = random.Random(1)
    shares = [0.0, 0.02, 1.0, *(rng.random() for _ in range(6))]
    seen = set()
    for number, share in enumerate(shares):
        tree = resumed(share, str(number))
        found, (again,) = values(tree), restarts(tree)
        kept = again[0] if again else 300
        seen.add(kept)
        for name, draws in whole.items():
            assert draws.dtype == found[name].dtype
            np.testing.assert_array_equal(draws[:, :kept], found[name][:, :kept])
        if again:
            assert not np.array_equal(whole["x"][:, kept:], found["x"][:, kept:])
        assert len(set(found["step_size"][0])) == 1
    assert len(seen) > 5
    # What goes on twice is the same twice.
    assert again
    for name, draws in values(resumed(share, "again")).items():
        np.testing.assert_array_equal(draws, found[name])


def test_a_chain_that_goes_on_samples_the_same_posterior(tmp_path, kill, caplog):
    settings = ob.Nuts(chains=1, warmup=300, draws=2500)
    for share in (0.1, 0.3):
        kill(share)
        with pytest.raises(Killed):
            nuts(tmp_path, settings)
    tree = nuts(tmp_path, settings)
    ((first, second),) = restarts(tree)
    assert 0 < first < second < 2500
    assert f"chain 1 goes on after {second:,} of 2,500 draws" in caplog.text
    rest = tree["posterior"].isel(draw=slice(first, None))
    for i in range(2):
        assert_mean(rest["x"].to_numpy()[..., i], MEAN[i])
    assert_mean(rest["tau"].to_numpy(), SHAPE / RATE)
    assert json.loads(tree.attrs[schema.SAMPLING_SECONDS])[0] > 0


def test_every_metric_and_method_goes_on(tmp_path, kill):
    short = {"chains": 2, "warmup": 150, "draws": 200}
    for number, settings in enumerate(
        [
            ob.Nuts(**short, metric="dense"),
            ob.Nuts(**short, metric="unit", init="optimum", init_starts=2),
            ob.Hmc(**short, trajectory_length=1.0),
        ]
    ):
        call = {"engine": "cmdstan", "method": settings, "checkpoint": tmp_path / str(number)}
        kill(0.8, settings.chains)
        with pytest.raises(Killed):
            ob.infer(known_target("stan"), **call)
        tree = ob.infer(known_target("stan"), **call)
        (again,) = filter(None, restarts(tree))
        assert 0 < again[0] < 200
        steps = tree["sample_stats"]["step_size"].to_numpy()
        assert [len(set(chain)) for chain in steps] == [1, 1]
        assert tree["posterior"]["x"].shape == (2, 200, 2)
        assert np.isfinite(tree["posterior"]["x"].to_numpy()).all()


def test_more_draws_go_on_from_those_that_are_there(tmp_path):
    few = values(nuts(tmp_path))
    tree = nuts(tmp_path, ob.Nuts(chains=1, warmup=150, draws=400))
    assert restarts(tree) == [[300]]
    np.testing.assert_array_equal(values(tree)["x"][:, :300], few["x"])
    assert values(tree)["x"].shape == (1, 400, 2)


def test_a_chain_that_is_stopped_keeps_what_it_has(tmp_path, after):
    def stop(csv):
        raise RunCancelled("stopped")

    after(stop)
    with pytest.raises(RunCancelled):
        nuts(tmp_path)
    assert kept_draws(tmp_path) == [300]
    assert not list(tmp_path.glob("chain-0/stan-*"))


def test_draws_that_could_not_be_written_are_an_error(tmp_path, after):
    """CmdStan on a full disk goes on, exit code 0, and leaves a file that is cut short, if in its last lines."""
    after(lambda csv: csv.write_text(csv.read_text().partition("#  Elapsed")[0]))
    with pytest.raises(StanRunError, match="Stan wrote 300 of 300 draws"):
        nuts(None)
    after(lambda csv: csv.write_bytes(csv.read_bytes()[: csv.stat().st_size // 2]))
    for folder, remedy in ((tmp_path, "run the same again, which goes on"), (None, "set TMPDIR")):
        message = rf"Stan wrote \d+ of 300 draws to .*stan-0\.csv .*; make room there, .*{remedy}"
        with pytest.raises(StanRunError, match=message):
            nuts(folder)
    after(lambda csv: None)
    assert restarts(nuts(tmp_path))[0]
