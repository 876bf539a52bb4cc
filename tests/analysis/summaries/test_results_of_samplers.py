"""Posteriors that other samplers leave in this process, and files, in place of a tree."""

import json
from types import SimpleNamespace

import cmdstanpy
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

import onebasin as ob
from onebasin.base.checks import check_paths
from onebasin.posteriors.view import as_view

from ...posteriors.chains import write


def model():
    mu = numpyro.sample("mu", dist.Normal(0, 1).expand([2]))
    numpyro.deterministic("total", mu.sum())


@pytest.fixture(scope="module")
def mcmc():
    made = MCMC(
        NUTS(model, max_tree_depth=6),
        num_warmup=20,
        num_samples=30,
        num_chains=2,
        chain_method="sequential",
        progress_bar=False,
    )
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


def test_an_mcmc_that_has_not_run_is_refused():
    with pytest.raises(TypeError, match="`posterior` is an MCMC that has not run yet"):
        ob.diagnose(MCMC(NUTS(model), num_warmup=1, num_samples=1))


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
