"""Models compared and stacked by what they predict: ArviZ's table, weights that are known, parts of one posterior."""

import json

import arviz_stats
import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import onebasin as ob
from onebasin.cli.main import main
from onebasin.models.symmetry.blocks import to_json
from onebasin.posteriors.view import as_view

SHARE = 0.7
"""Of the observations, those near -1; the others are near 1."""
Y = np.where(np.arange(60) < 60 * SHARE, -1.0, 1.0)


def tree_of(mu, **stats):
    dims = ("chain", "draw")
    groups = {
        "posterior": xr.Dataset({"mu": (dims, mu)}),
        "log_likelihood": xr.Dataset({"y": ((*dims, "obs"), norm.logpdf(Y, mu[..., None], 0.4))}),
        "observed_data": xr.Dataset({"y": ("obs", Y)}),
    }
    if stats:
        groups["sample_stats"] = xr.Dataset({n: (dims, v) for n, v in stats.items()})
    return xr.DataTree.from_dict(groups)


@pytest.fixture
def tree(rng):
    """Four chains, of which the third is in a mode of its own."""
    return tree_of(np.array([-1, -1, 1, -1.0])[:, None] + 0.02 * rng.normal(size=(4, 100)))


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


def test_modes_get_the_weights_of_their_observations(tree):
    found = ob.compare_models(tree, by="mode")
    assert found.weights.to_numpy() == pytest.approx([SHARE, 1 - SHARE], abs=1e-3)
    weights = np.array([SHARE, 1 - SHARE])
    each_i = np.stack([found.loo[name].elpd_i for name in found.table.index], axis=1)
    stack, sampled = (np.log(np.exp(each_i) @ w) for w in (weights, [0.75, 0.25]))
    np.testing.assert_allclose(found.pointwise["stack"], stack, rtol=1e-3)
    np.testing.assert_allclose(found.pointwise["unweighted"], sampled, rtol=1e-10)
    gap = stack - sampled
    assert found.gain() == pytest.approx((gap.sum(), 60**0.5 * gap.std(ddof=1)), rel=0.02)
    assert "18 of 60 observations are predicted better" in repr(found).replace("\n", " ")


def test_chains_that_differ_in_labels_alone_are_one_mode(rng):
    mu = np.array([-1.0, 1.0]) + 0.02 * rng.normal(size=(2, 100, 2))
    mu[1] = mu[1, :, ::-1]
    parts = norm.logpdf(Y[:, None], mu[..., None, :], 0.4) + np.log(0.5)
    terms = np.logaddexp(*np.moveaxis(parts, -1, 0))
    tree = as_view({"posterior": {"mu": mu}, "log_likelihood": {"y": terms}}).tree
    ob.compare_models(tree, by="mode")
    tree.attrs["symmetry"] = to_json((ob.Exchangeable({"mu": 0}),))
    with pytest.raises(ValueError, match="chains that agree, modulo labels"):
        ob.compare_models(tree, by="mode")
    assert len(ob.compare_models(tree, by="chain").weights) == 2


def test_the_command_compares_files_and_stacks_modes(tree, tmp_path, capsys):
    both, low = tmp_path / "both.nc", tmp_path / "low.nc"
    ob.save(tree, both)
    ob.save(tree.isel(chain=[0, 1]), low)
    assert main(["loo", str(low), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["elpd"] == pytest.approx(float(ob.loo(low).elpd))
    assert main(["loo", str(both), "--by", "mode"]) == 0
    assert "Weights: mode 0 0.7, mode 1 0.3." in capsys.readouterr().out
    assert main(["loo", str(both), str(low), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["models"]) == {"both", "low"}
    assert main(["loo", str(both), str(low), "--by", "mode"]) == 1
    assert "`--by` and `--observations` are of one posterior" in capsys.readouterr().err


def named(rng, names):
    """A posterior of a mean, with the log likelihoods of observations that have names; in the order of the names."""
    y = {name: 0.3 * place for place, name in enumerate("abcdefghi")}
    mu = 1.0 + 0.1 * rng.normal(size=(4, 250))
    terms = -0.5 * (np.array([y[n] for n in names]) - mu[..., None]) ** 2
    data = xr.Dataset({"y": (("chain", "draw", "row"), terms)}, coords={"row": list(names)})
    posterior = xr.Dataset({"mu": (("chain", "draw"), mu)})
    return xr.DataTree.from_dict({"posterior": posterior, "log_likelihood": data})


@pytest.mark.parametrize("order", ["hgfedcba", "cabdhefg"])
def test_observations_are_paired_by_their_names(order):
    """By place, two equal models would differ by a standard error of several nats."""
    first, other = (named(np.random.default_rng(1), names) for names in ("abcdefgh", order))
    found = ob.compare_models({"first": first, "other": other})
    assert found.table["dse"].to_numpy() == pytest.approx([0.0, 0.0], abs=1e-9)
    assert found.pointwise["first"].to_numpy() == pytest.approx(found.pointwise["other"].to_numpy())
    assert found.alike == tuple(found.table.index) and "No difference" in found.answer
    with pytest.raises(ValueError, match="other lacks `h` of first"):
        ob.compare_models({"first": first, "other": named(np.random.default_rng(1), "abcdefgi")})


@pytest.mark.parametrize(("shift", "clear"), [(0.05, False), (2.0, True)])
def test_a_difference_is_seen_from_two_standard_errors_on(shift, clear):
    rng = np.random.default_rng(3)
    y, noise = rng.normal(size=100), 0.02 * rng.normal(size=(2, 4, 250))
    terms = [-0.5 * (y - m[..., None]) ** 2 for m in (noise[0], shift + noise[1])]
    trees = [
        {"posterior": {"m": m}, "log_likelihood": {"y": t}}
        for m, t in zip(noise, terms, strict=True)
    ]
    found = ob.compare_models({"right": trees[0], "shifted": trees[1]})
    row = found.table.iloc[1]
    assert (row["elpd_diff"] < -2 * row["dse"]) == clear == (len(found.alike) == 1)
    assert found.answer.startswith(
        "`right` predicts better" if clear else "No difference can be seen"
    )
