"""`onebasin compare RUN.nc --truth NAME`: runs held against a kept reference."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.compare.reference.known import known_of
from onebasin.inference.runs.posterior import build, save
from onebasin.models import Target
from onebasin.models.symmetry.blocks import Exchangeable

TARGET = Target("pair", symmetry=(Exchangeable({"mu": 0}),))


def pair(seed, shift=0.0, draws=400):
    rng = np.random.default_rng(seed)
    mu = np.array([-2.0, 2.0]) + shift + 0.3 * rng.normal(size=(4, draws, 2))
    mu[1::2] = mu[1::2, :, ::-1]
    return build(
        TARGET,
        {"mu": mu},
        {"lp": rng.normal(size=(4, draws))},
        {"engine": "stan", "method": "nuts"},
    )


@pytest.fixture
def runs(here, monkeypatch):
    """Two runs, one of them off, and a reference of the name `pair`."""
    save(pair(1), "good.nc")
    save(pair(2, shift=0.1), "off.nc")
    known = known_of(pair(3, draws=2500), name="pair")
    monkeypatch.setattr("onebasin.truth.references", lambda: ("pair",))
    monkeypatch.setattr("onebasin.truth.open_reference", lambda name: SimpleNamespace(known=known))
    return here


def test_a_run_is_held_against_a_reference_by_its_name(onebasin, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    answer = onebasin("compare", "good.nc", "--truth", "pair")
    assert (answer.code, answer.err) == (0, "")
    first, second, *_ = answer.out.splitlines()
    assert first == "✓ good: agrees"
    assert second.startswith("Agrees with pair, as far as its Monte Carlo error can see")
    for word in ("mu[0]", "mean(mu)", "off by", "Bonferroni", "canonical labelling"):
        assert word in answer.out


def test_several_runs_are_told_of_one_by_one(onebasin, runs):
    answer = onebasin("compare", "good.nc", "off.nc", "--truth", "pair", "--json")
    found = {run["name"]: run for run in answer.json["runs"]}
    assert answer.json["truth"] == "pair"
    assert {name: run["verdict"] for name, run in found.items()} == {
        "good": "agrees",
        "off": "differs",
    }
    assert found["off"]["files"] == ["off.nc"]
    quantities = {row["quantity"]: row for row in found["off"]["quantities"]}
    assert quantities["mu[0]"]["d_mean"] == pytest.approx(1 / 3, abs=0.15)


def test_weights_and_variables_reach_the_comparison(onebasin, runs):
    words = ("compare", "good.nc", "--truth", "pair", "--json")
    kinds = {r["kind"] for r in onebasin(*words, "--no-weights").json["runs"][0]["quantities"]}
    assert kinds == {"invariant"}
    assert "asks for tau" in onebasin(*words, "--var", "tau").err


def test_a_file_among_the_runs_comes_first(onebasin, runs):
    save(pair(4), "pair.nc")
    answer = onebasin("compare", "good.nc", "pair.nc", "--truth", "pair.nc", "--json")
    assert answer.json["truth"] == "pair"
    assert "posteriors" in answer.json


def test_a_run_of_another_model_is_one_line(onebasin, runs):
    data = xr.Dataset({"tau": (("chain", "draw"), np.random.default_rng(0).normal(size=(4, 50)))})
    xr.DataTree.from_dict({"posterior": data}).to_netcdf("other.nc", engine="h5netcdf")
    answer = onebasin("compare", "other.nc", "--truth", "pair")
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert "lacks mu, which `pair` holds, and has tau" in answer.err
