"""Microcanonical Langevin Monte Carlo on targets whose moments are known; what it keeps; what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

from onebasin.base.errors import InferenceError
from onebasin.inference import MclmcSettings, mclmc
from onebasin.models import BayesianNetwork, Gaussian, Network, NetworkTarget, Target

from ..known import COVARIANCE, MEAN, RATE, SHAPE, assert_mean, known_target

SMALL = MclmcSettings(chains=2, warmup=300, draws=60, thin=2)


@pytest.fixture(scope="module")
def network() -> NetworkTarget:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 2))
    y = np.sin(x[:, 0]) + 0.3 * rng.standard_normal(30)
    return BayesianNetwork(Network(2, (3,)), Gaussian(noise_sd=0.3)).condition(x, y)


@pytest.fixture(scope="module")
def run(network: NetworkTarget) -> xr.DataTree:
    return mclmc(network, settings=SMALL, seed=3)


def scaled(sds: tuple[float, ...]) -> Target:
    def model() -> None:
        numpyro.sample("x", dist.Normal(0.0, jnp.asarray(sds)).to_event(1))

    return Target(name="scaled", numpyro_model=model)


def test_adjusted_has_the_known_moments() -> None:
    settings = MclmcSettings(adjusted=True, warmup=600, draws=1500, thin=2)
    tree = mclmc(known_target("numpyro"), settings=settings, seed=2)
    assert "stein_identities" not in tree.attrs  # there is no bias to look for
    post = tree.posterior
    x, tau = post["x"].to_numpy(), post["tau"].to_numpy()
    for i in range(2):
        assert_mean(x[..., i], MEAN[i])
        assert_mean((x[..., i] - MEAN[i]) ** 2, COVARIANCE[i, i])
    assert_mean(tau, SHAPE / RATE)
    assert_mean((tau - SHAPE / RATE) ** 3, 2 * SHAPE / RATE**3, min_ess=100)


def test_unadjusted_bias_falls_with_the_energy_variance() -> None:
    sds = np.geomspace(0.1, 10.0, 10)  # which only a metric learnt can follow
    rough, fine = (
        mclmc(
            scaled(tuple(sds)),
            settings=MclmcSettings(warmup=4000, draws=600, energy_variance=asked),
            seed=1,
        )
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


def test_the_form_is_that_of_other_chains(run: xr.DataTree) -> None:
    assert run["posterior"]["W1"].shape == (2, 60, 2, 3)
    stats = run["sample_stats"]
    for name in ("lp", "step_size", "n_steps", "length", "energy_variance", "diverging"):
        assert stats[name].shape == (2, 60)
    assert (stats["n_steps"] == 2).all()
    assert run.attrs["method"] == "mclmc"
    assert run.attrs["gradient_evaluations"] == 2 * int(stats["n_steps"].sum())
    assert len(set(stats["step_size"].to_numpy()[:, -1])) == 2  # each chain tunes its own
    assert (stats["step_size"] == stats["step_size"][:, :1]).all()


def test_lp_is_the_log_density_of_the_draw(run: xr.DataTree, network: NetworkTarget) -> None:
    from onebasin.inference import log_density

    values = {n: v.to_numpy()[1, -1] for n, v in run["posterior"].data_vars.items()}
    found = float(log_density(network, values))
    assert run["sample_stats"]["lp"].to_numpy()[1, -1] == pytest.approx(found, rel=1e-10)


def test_a_chain_does_not_depend_on_the_others(run: xr.DataTree, network: NetworkTarget) -> None:
    more = mclmc(network, settings=replace(SMALL, chains=3), seed=3)
    assert more["posterior"].isel(chain=slice(0, 2)).equals(run["posterior"])
    assert not more["posterior"].isel(chain=2).equals(run["posterior"].isel(chain=1))


def test_a_chain_goes_on_bit_for_bit(
    run: xr.DataTree, network: NetworkTarget, tmp_path: Path
) -> None:
    place = tmp_path / "kept"
    mclmc(network, settings=replace(SMALL, draws=23), seed=3, checkpoint=place)
    again = mclmc(network, settings=SMALL, seed=3, checkpoint=place)
    assert again["posterior"].equals(run["posterior"])
    assert again["sample_stats"].equals(run["sample_stats"])


def test_single_precision_is_kept() -> None:
    tree = mclmc(scaled((1.0, 2.0)), settings=replace(SMALL, dtype="float32"), seed=3)
    assert tree["posterior"]["x"].dtype == np.float32


def test_a_step_that_is_not_finite_is_not_taken() -> None:
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("wall", jnp.where(x[0] > 1.0, jnp.nan, 0.0))

    settings = MclmcSettings(chains=2, warmup=500, draws=200, metric="unit", init_radius=0.5)
    tree = mclmc(Target(name="wall", numpyro_model=model), settings=settings, seed=1)
    assert int(tree["sample_stats"]["diverging"].sum()) > 0
    assert float(tree["posterior"]["x"][..., 0].max()) <= 1.0
    assert np.isfinite(tree["sample_stats"]["lp"]).all()


def test_a_single_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="`target` 'scaled' has a single parameter"):
        mclmc(scaled((1.0,)), settings=SMALL)


def test_a_start_that_leads_nowhere_is_said() -> None:
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("wall", jnp.where(jnp.abs(x[0]) < 0.3, jnp.nan, 0.0))

    settings = replace(SMALL, start_steps=500, learning_rate=0.1)
    with pytest.raises(InferenceError, match="lower `learning_rate`"):
        mclmc(Target(name="hole", numpyro_model=model), settings=settings, seed=1)
