"""Methods that move by JAX on Stan programs: microcanonical chains and symmetrised VI."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from jax.scipy.special import logsumexp
from numpyro import distributions as dist

import onebasin as ob
from onebasin.models import Target
from onebasin.stan.interpreter.runtime import identity

from .known import MEAN, RATE, SHAPE, assert_mean, known_target

pytestmark = pytest.mark.stan

PROGRAMS = Path(__file__).parents[2] / "notebooks" / "programs"
SHORT = ob.Mclmc(chains=2, warmup=300, draws=60, thin=2)
QUICK = ob.Symmetrised(steps=200, evaluate_every=100, report_draws=50, draws=40)
WORDS = "mu,sigma,1-theta"
START = {"mu": [-1.0, 1.0], "sigma": [1.0, 1.0], "theta": 0.5}


def mixture(**more: Any) -> Target:
    return ob.stan_program(PROGRAMS / "mixture.stan", PROGRAMS / "mixture.json", **more)


def numpyro_mixture() -> Target:
    """The same in NumPyro, which has the same coordinates in the same order."""
    y = np.asarray(json.loads((PROGRAMS / "mixture.json").read_text())["y"])

    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([2]).to_event(1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(2.0).expand([2]).to_event(1))
        theta = numpyro.sample("theta", dist.Beta(5.0, 5.0))
        weights = jnp.log(jnp.stack([theta, 1 - theta]))
        parts = dist.Normal(mu[None], sigma[None]).log_prob(y[:, None]) + weights[None]
        numpyro.factor("y", jnp.sum(logsumexp(parts, axis=1)))

    return Target("mixture", numpyro_model=model, symmetry=mixture(symmetry=WORDS).symmetry)


@pytest.fixture(scope="module")
def chains() -> xr.DataTree:
    return ob.infer(mixture(symmetry=WORDS), method=SHORT, seed=3)


def test_a_posterior_is_that_of_the_interpreter(chains):
    assert (chains.attrs["engine"], chains.attrs["method"]) == ("stanli", "mclmc")
    assert chains["posterior"]["mu"].shape == (2, 60, 2)
    assert chains["log_likelihood"]["y"].shape == chains["posterior_predictive"]["y"].shape
    assert "real<lower=0, upper=1> theta" in chains.attrs["program"]
    assert json.loads(chains.attrs["symmetry_evidence"])["draws"] > 0
    assert ob.diagnose(chains).verdict in ("usable", "aligned", "invariant", "unusable")
    density = ob.jax_density(mixture())
    last = {n: chains["posterior"][n].to_numpy()[1, -1] for n in density.names}
    found = float(density.log_density(density.unconstrain(last)))
    assert chains["sample_stats"]["lp"].to_numpy()[1, -1] == pytest.approx(found, rel=1e-10)


def test_hmc_of_numpyro_takes_a_program():
    """By itself, as the interpreter has none."""
    tree = ob.hmc(known_target("stan"), seed=2, chains=2, warmup=300, draws=800)
    assert (tree.attrs["engine"], tree.attrs["method"]) == ("numpyro", "hmc")
    assert tree.attrs["engine_build"] == identity()
    assert_mean(tree.posterior["tau"].to_numpy(), SHAPE / RATE)
    assert_mean(tree.posterior["x"].to_numpy()[..., 1], MEAN[1])


@pytest.mark.slow
def test_symmetrised_vi_is_that_of_the_same_numpyro_model():
    fit = ob.infer(mixture(symmetry=WORDS), method=QUICK, start=START, seed=1)
    other = ob.infer(numpyro_mixture(), method=QUICK, start=START, seed=1)
    assert fit.attrs["engine"] == "stanli"
    names = ("loc", "scale", "elbo", "information", "symmetrised_elbo_lower")
    for name in names:
        found, expected = (tree["variational"][name].to_numpy() for tree in (fit, other))
        if (
            "elbo" in name
        ):  # a half normal has twice the density of Stan's normal of a positive number
            expected = expected - 2 * np.log(2)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(fit["posterior"]["mu"], other["posterior"]["mu"], rtol=1e-6)
    assert "y_rep" not in fit["posterior"] and fit["posterior_predictive"]["y"].shape[:2] == (1, 40)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"anneal": 0.5}, "which needs the prior apart from"), ({"batch_size": 5}, "`batch_size`")],
)
def test_what_needs_a_network_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        ob.infer(mixture(symmetry=WORDS), replace(QUICK, **given))
