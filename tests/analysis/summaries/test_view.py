"""Reading a posterior: names, order of axes, and what is rejected."""

from __future__ import annotations

import json
from types import SimpleNamespace

import cmdstanpy
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
from numpyro.infer import MCMC, NUTS

import onebasin as ob
from onebasin.base.checks import check_paths
from onebasin.posteriors.view import as_view

from ...posteriors.chains import write


def test_draws_names_and_orders_scalar_entries(make_mcmc, rng):
    w1, sigma = rng.normal(size=(2, 5, 2, 3)), rng.normal(size=(2, 5))
    draws = as_view(make_mcmc({"W1": w1, "sigma": sigma})).draws()
    assert draws.names == (
        "W1[0,0]", "W1[0,1]", "W1[0,2]", "W1[1,0]", "W1[1,1]", "W1[1,2]", "sigma",
    )  # fmt: skip
    np.testing.assert_array_equal(draws.of("W1[1,0]"), w1[:, :, 1, 0])
    np.testing.assert_array_equal(draws.of("sigma"), sigma)
    assert draws.values.dtype == np.float64


def test_as_view_takes_what_arviz_converts_and_the_attributes_of_a_dataset(rng):
    mu = rng.normal(size=(2, 5))
    assert as_view({"mu": mu}).draws().names == ("mu",)
    view = as_view(xr.Dataset({"mu": (("chain", "draw"), mu)}, attrs={"target": "toy"}))
    np.testing.assert_array_equal(view.draws().values[..., 0], mu)
    assert view.attribute("target") == "toy"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_draws_counts_and_names_draws_that_are_not_finite(make_mcmc, rng, bad):
    b1 = rng.normal(size=(2, 5, 3))
    b1[0, 1, 2] = b1[1, 4, 2] = bad
    with pytest.raises(
        ValueError,
        match=r"has 2 draw\(s\) that are not finite \(number per variable: `b1\[2\]` \(2\)\)",
    ):
        as_view(make_mcmc({"b1": b1})).draws()


def test_entries_that_are_finite_in_no_draw_are_left_out_and_named(make_mcmc, rng):
    factor = rng.normal(size=(2, 50, 3, 3))
    factor[..., *np.triu_indices(3, 1)] = np.nan
    view = as_view(make_mcmc({"L": factor, "mu": rng.normal(size=(2, 50))}))
    draws = view.draws()
    assert draws.undefined == ("L[0,1]", "L[0,2]", "L[1,2]")
    assert draws.names == ("L[0,0]", "L[1,0]", "L[1,1]", "L[2,0]", "L[2,1]", "L[2,2]", "mu")
    np.testing.assert_array_equal(draws.values[..., 2], factor[..., 1, 1])
    np.testing.assert_array_equal(draws.of("mu"), view.values("mu"))
    np.testing.assert_array_equal(draws.every(7), draws.values[:, ::-1][:, ::7].reshape(-1, 7))


def test_kinds_are_as_written_down_and_otherwise_a_guess(make_mcmc, rng):
    one = rng.normal(size=(2, 50))
    names = ("mu", "z", "log_lik", "y_rep", "resid", "new_york", "ys")
    values = {name: one for name in names} | {"z": (one > 0).astype(int)}
    guess = as_view(make_mcmc(values)).kinds
    assert guess.named("parameter") == ("mu", "new_york", "ys")
    attrs = {"kinds": json.dumps(dict.fromkeys(names, "transformed"))}
    written = as_view(make_mcmc(values, attrs=attrs)).kinds
    assert written.named("transformed") == names
    assert not written.guessed
    with pytest.raises(ValueError, match="attribute `kinds` of `posterior` has a wrong type"):
        _ = as_view(make_mcmc(values, attrs={"kinds": "[3]"})).kinds


def model():
    mu = numpyro.sample("mu", dist.Normal(0, 1).expand([2]))
    numpyro.deterministic("total", mu.sum())


@pytest.fixture(scope="module")
def mcmc():
    how = {"num_warmup": 20, "num_samples": 30, "num_chains": 2, "progress_bar": False}
    made = MCMC(NUTS(model, max_tree_depth=6), chain_method="sequential", **how)
    made.run(jax.random.PRNGKey(0), extra_fields=("energy", "potential_energy", "num_steps"))
    return made


def test_an_mcmc_of_numpyro_is_a_posterior(mcmc):
    view = as_view(mcmc)
    assert view.values("mu").shape == (2, 30, 2)
    np.testing.assert_array_equal(view.values("mu"), mcmc.get_samples(group_by_chain=True)["mu"])
    assert view.stat("diverging") is not None
    assert json.loads(view.attribute("kinds")) == {"mu": "parameter", "total": "transformed"}
    assert (view.attribute("engine"), view.number("max_tree_depth")) == ("numpyro", 6)
    assert ob.diagnose(mcmc).num_chains == 2


@pytest.fixture
def chains(tmp_path):
    """CSV files of two chains of 30 draws."""
    return write(tmp_path, "m", 2, draws=30)


def test_files_stand_in_the_place_of_a_tree(chains, tmp_path):
    found = ob.diagnose([str(path) for path in chains])
    assert (found.num_chains, found.num_draws) == (2, 30)
    assert ob.diagnose(tmp_path / "m_*.csv").rhat.value == found.rhat.value
    with pytest.raises(ValueError, match="`path` is empty"):
        check_paths("path", [])


def test_a_fit_of_cmdstanpy_is_its_files(chains):
    runs = SimpleNamespace(csv_files=[str(path) for path in chains])
    for kind in (cmdstanpy.CmdStanMCMC, cmdstanpy.CmdStanPathfinder):
        fit = object.__new__(kind)
        fit.__dict__["runset" if kind is cmdstanpy.CmdStanMCMC else "_runset"] = runs
        view = as_view(fit)
        assert view.values("mu").shape == (2, 30, 2)
        assert view.attribute("target") == "mix"
