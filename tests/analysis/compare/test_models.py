"""Models compared and stacked by what they predict: ArviZ's table, weights that are known, parts of one posterior."""

import json

import arviz_stats
import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import onebasin as ob
from onebasin.cli.main import main

from ..conftest import tree_of

SHARE = 0.7
"""Of the observations, those near -1; the others are near 1."""
Y = np.where(np.arange(60) < 60 * SHARE, -1.0, 1.0)


def posterior_of(mu):
    dims = ("chain", "draw")
    terms, data = ((*dims, "obs"), norm.logpdf(Y, mu[..., None], 0.4)), {"y": ("obs", Y)}
    return tree_of(posterior={"mu": (dims, mu)}, log_likelihood={"y": terms}, observed_data=data)


@pytest.fixture
def tree(rng):
    """Four chains, of which the third is in a mode of its own."""
    return posterior_of(np.array([-1, -1, 1, -1.0])[:, None] + 0.02 * rng.normal(size=(4, 100)))


@pytest.mark.parametrize("method", ["stacking", "BB-pseudo-BMA", "pseudo-BMA"])
def test_the_table_is_that_of_arviz(tree, method):
    models = {"low": tree.isel(chain=[0, 1]), "high": tree.isel(chain=[2])}
    found = ob.compare_models(models, method=method).table
    want = arviz_stats.compare(models, method=method, round_to="none")
    assert list(found.index) == list(want.index)
    numbers = want.select_dtypes(float).columns
    np.testing.assert_allclose(found[numbers], want[numbers], rtol=1e-10)
    given = ob.compare_models({name: ob.loo(run) for name, run in models.items()}, method=method)
    np.testing.assert_allclose(given.table[numbers], want[numbers], rtol=1e-10)


def test_models_get_the_weights_of_their_observations(rng):
    noise = {"low": -1.0, "high": 1.0}
    models = {n: posterior_of(m + 0.02 * rng.normal(size=(2, 100))) for n, m in noise.items()}
    found = ob.compare_models(models)
    assert found.weights.to_numpy() == pytest.approx([SHARE, 1 - SHARE], abs=1e-3)


def test_the_command_compares_files(tree, tmp_path, capsys):
    both, low = tmp_path / "both.nc", tmp_path / "low.nc"
    ob.save(tree, both)
    ob.save(tree.isel(chain=[0, 1]), low)
    assert main(["loo", str(low), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["elpd"] == pytest.approx(float(ob.loo(low).elpd))
    assert main(["loo", str(both), str(low), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["models"]) == {"both", "low"}


def named(rng, names):
    """A posterior of a mean, with the log likelihoods of observations that have names; in the order of the names."""
    y = {name: 0.3 * place for place, name in enumerate("abcdefghi")}
    mu = 1.0 + 0.1 * rng.normal(size=(4, 250))
    terms = -0.5 * (np.array([y[n] for n in names]) - mu[..., None]) ** 2
    data = xr.Dataset({"y": (("chain", "draw", "row"), terms)}, coords={"row": list(names)})
    return tree_of(posterior={"mu": (("chain", "draw"), mu)}, log_likelihood=data)


@pytest.mark.parametrize("order", ["hgfedcba", "cabdhefg"])
def test_observations_are_paired_by_their_names(order):
    """By place, two equal models would differ by a standard error of several nats."""
    first, other = (named(np.random.default_rng(1), names) for names in ("abcdefgh", order))
    found = ob.compare_models({"first": first, "other": other})
    assert found.table["dse"].to_numpy() == pytest.approx([0.0, 0.0], abs=1e-9)
    assert found.alike == tuple(found.table.index) and "No difference" in found.answer
    with pytest.raises(ValueError, match="other lacks `h`, which first has"):
        ob.compare_models({"first": first, "other": named(np.random.default_rng(1), "abcdefgi")})


@pytest.mark.parametrize(("shift", "clear"), [(0.05, False), (2.0, True)])
def test_a_difference_is_seen_from_two_standard_errors_on(shift, clear):
    rng = np.random.default_rng(3)
    y, noise = rng.normal(size=100), 0.02 * rng.normal(size=(2, 4, 250))
    terms = [-0.5 * (y - m[..., None]) ** 2 for m in (noise[0], shift + noise[1])]
    pairs = zip(noise, terms, strict=True)
    trees = [{"posterior": {"m": m}, "log_likelihood": {"y": t}} for m, t in pairs]
    found = ob.compare_models({"right": trees[0], "shifted": trees[1]})
    row = found.table.iloc[1]
    assert (row["elpd_diff"] < -2 * row["dse"]) == clear == (len(found.alike) == 1)
    assert found.answer.startswith(
        "`right` predicts better" if clear else "No difference was detected"
    )
