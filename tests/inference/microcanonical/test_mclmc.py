"""Microcanonical Langevin Monte Carlo on targets whose moments are known; what it keeps; what it refuses."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

from onebasin.inference import Mclmc, infer, mclmc
from onebasin.models import Target

from ..known import COVARIANCE, MEAN, RATE, SHAPE, assert_mean, known_target

pytestmark = pytest.mark.full

SMALL = Mclmc(chains=2, warmup=300, draws=60, thin=2)


def scaled(sds: tuple[float, ...]) -> Target:
    def model() -> None:
        numpyro.sample("x", dist.Normal(0.0, jnp.asarray(sds)).to_event(1))

    return Target(name="scaled", numpyro_model=model)


def test_adjusted_has_the_known_moments():
    settings = Mclmc(adjusted=True, warmup=600, draws=1500, thin=2)
    tree = infer(known_target("numpyro"), settings, seed=2)
    assert "stein_identities" not in tree.attrs  # there is no bias to look for
    post = tree.posterior
    x, tau = post["x"].to_numpy(), post["tau"].to_numpy()
    for i in range(2):
        assert_mean(x[..., i], MEAN[i])
        assert_mean((x[..., i] - MEAN[i]) ** 2, COVARIANCE[i, i])
    assert_mean(tau, SHAPE / RATE)
    assert_mean((tau - SHAPE / RATE) ** 3, 2 * SHAPE / RATE**3, min_ess=100)


def test_unadjusted_bias_falls_with_the_energy_variance():
    sds = np.geomspace(0.1, 10.0, 10)  # which only a metric learnt can follow
    rough, fine = (
        mclmc(scaled(tuple(sds)), warmup=4000, draws=600, energy_variance=asked, seed=1)
        for asked in (1.0, 1e-5)
    )
    off = [
        np.abs((post.posterior["x"].to_numpy() / sds).var(axis=(0, 1)) - 1).mean()
        for post in (rough, fine)
    ]
    assert off[0] > 0.1  # the bias is there to be seen
    assert off[1] < 0.06  # twice the Monte Carlo error of a variance
    assert_mean((fine.posterior["x"].to_numpy() / sds)[..., 0] ** 2, 1.0)
    found = fine.sample_stats["energy_variance"].mean()
    assert 0.5e-5 < found < 5e-5
    by_gradients = [json.loads(tree.attrs["stein_identities"])["spread"] for tree in (rough, fine)]
    assert by_gradients[0]["least"] > 0.1  # the gradients see it too
    assert by_gradients[1]["least"] == 0


def test_single_precision_is_kept_and_each_chain_tunes_its_own_steps():
    tree = infer(scaled((1.0, 2.0)), replace(SMALL, dtype="float32"), seed=3)
    assert tree["posterior"]["x"].dtype == np.float32
    stats = tree["sample_stats"]
    assert (stats["n_steps"] == 2).all()
    assert len(set(stats["step_size"].to_numpy()[:, -1])) == 2
    assert (stats["step_size"] == stats["step_size"][:, :1]).all()


def test_a_step_that_is_not_finite_is_not_taken():
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("wall", jnp.where(x[0] > 1.0, jnp.nan, 0.0))

    settings = Mclmc(chains=2, warmup=500, draws=200, metric="unit", init_radius=0.5)
    tree = infer(Target(name="wall", numpyro_model=model), settings, seed=1)
    assert int(tree["sample_stats"]["diverging"].sum()) > 0
    assert float(tree["posterior"]["x"][..., 0].max()) <= 1.0
    assert np.isfinite(tree["sample_stats"]["lp"]).all()
