"""NUTS and static HMC on targets whose moments are known, and on both engines alike."""

from __future__ import annotations

import threading
import time
import tracemalloc
from types import SimpleNamespace

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

from onebasin.base.progress import ProgressBars
from onebasin.inference import Hmc, Nuts, infer
from onebasin.inference.contracts.method import Job
from onebasin.inference.mcmc.numpyro import NumpyroChains
from onebasin.inference.mcmc.places import ChainPlace, Gathered
from onebasin.models import BayesianNetwork, Categorical, Network, NetworkTarget, Target

from ...each import each
from ..known import MEAN, RATE, SHAPE, assert_known, assert_mean, known_target

ENGINES = ["numpyro", "stanli", pytest.param("cmdstan", marks=pytest.mark.stan)]
SMALL = Nuts(chains=2, warmup=300, draws=500)


@pytest.mark.parametrize("engine", ENGINES)
@each("metric", ["diag", "dense", "unit"])
def test_nuts_known_target_moments(engine: str, metric: str) -> None:
    settings = Nuts(chains=4, warmup=300, draws=700, metric=metric)
    assert_known(infer(known_target(engine), settings, engine=engine, seed=3).posterior)


@pytest.mark.parametrize("engine", ENGINES[::2])  # the interpreter has none
def test_hmc_known_target_moments(engine: str) -> None:
    settings = Hmc(chains=4, warmup=500, draws=1500, trajectory_length=2.0)
    post = infer(known_target(engine), settings, engine=engine, seed=4).posterior
    for i in range(2):
        assert_mean(post["x"].to_numpy()[..., i], MEAN[i])
    assert_mean(post["tau"].to_numpy(), SHAPE / RATE)


def test_hmc_moves_a_gaussian_by_its_default() -> None:
    """Over a whole period, the engines' own default, it ends where it began: the smallest ESS here is then 4."""
    target = Target("normal", numpyro_model=_normal)
    settings = Hmc(chains=2, warmup=200, draws=500)
    x = infer(target, settings, seed=1).posterior["x"].to_numpy()
    assert min(float(arviz_stats.ess(x[..., i])) for i in range(5)) > 250
    assert min(float(arviz_stats.ess(x[..., i] ** 2)) for i in range(5)) > 250


def _normal() -> None:
    numpyro.sample("x", dist.Normal(0, 1).expand([5]))


@pytest.mark.parametrize("engine", ENGINES)
def test_tree_depth_bounds_the_number_of_steps(engine: str) -> None:
    stats = infer(known_target(engine), SMALL, engine=engine, seed=1).sample_stats
    depth, steps = stats["tree_depth"].to_numpy(), stats["n_steps"].to_numpy()
    assert (2.0**depth - 1 <= steps).all()
    assert (steps <= 2.0 ** (depth + 1) - 1).all()
    assert depth.max() > 1


RECORDED = {
    "nuts": (Nuts(chains=2, warmup=60, draws=20), 2.9545854141870826),
    "hmc": (Hmc(chains=2, warmup=60, draws=20, trajectory_length=0.3), 1.5844207214357613),
}
"""Last draw of tau with seed 1, recorded before chains could start at optima (jax 0.10, x86-64)."""


@each("method", ["nuts", "hmc"])
def test_random_starts_give_the_recorded_draws(method: str) -> None:
    settings, last = RECORDED[method]
    tau = infer(known_target("numpyro"), settings, seed=1).posterior["tau"]
    # Another processor may round otherwise; short chains do not blow that up beyond this.
    assert float(tau[-1, -1]) == pytest.approx(last, rel=1e-6)


def test_max_tree_depth_bounds_the_depth() -> None:
    settings = Nuts(chains=1, warmup=100, draws=100, max_tree_depth=2)
    stats = infer(known_target("numpyro"), settings, seed=1).sample_stats
    assert stats["tree_depth"].max() == 2


def _classifier(num_obs: int, in_dim: int, hidden_dim: int) -> NetworkTarget:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_obs, in_dim))
    network = Network(in_dim, (hidden_dim,), 3)
    labels = rng.integers(0, 3, num_obs)
    return BayesianNetwork(network, Categorical()).condition(x, labels, name="classes")


def test_hmc_trajectory_has_at_most_max_steps() -> None:
    target = _classifier(20, 3, 4)

    def run(max_steps: int) -> xr.DataTree:
        settings = Hmc(chains=1, warmup=100, draws=60, trajectory_length=2.0, max_steps=max_steps)
        return infer(target, settings, seed=1)

    free, tight = run(10_000), run(5)
    assert int(free.sample_stats["n_steps"].max()) > 5
    assert (tight.sample_stats["n_steps"] <= 5).all()
    assert int(tight.sample_stats["n_steps"].max()) == 5
    assert 0.5 < float(tight.sample_stats["acceptance_rate"].mean()) < 1


def test_bounded_hmc_known_target_moments() -> None:
    settings = Hmc(chains=2, warmup=300, draws=1500, trajectory_length=4.0, max_steps=3)
    post = infer(known_target("numpyro"), settings, seed=4).posterior
    for i in range(2):
        assert_mean(post["x"].to_numpy()[..., i], MEAN[i])
    assert_mean(post["tau"].to_numpy(), SHAPE / RATE)


@pytest.mark.slow
def test_draws_of_a_network_are_in_memory_about_once() -> None:
    """Peak of NumPy's memory over the draws' own size; measured 1.12; slices joined at the end need 2 or more."""
    target = _classifier(10, 400, 100)
    settings = Hmc(
        chains=1, warmup=100, draws=250, trajectory_length=0.01, max_steps=2, dtype="float32"
    )
    tracemalloc.start()
    try:
        post = infer(target, settings, seed=1).posterior
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {v.dtype for v in post.data_vars.values()} == {np.dtype(np.float32)}
    assert peak < 1.5 * sum(v.nbytes for v in post.data_vars.values())


def test_more_iterations_trace_the_model_no_more_often() -> None:
    traced = []

    def model() -> None:
        traced.append(1)
        numpyro.sample("x", dist.Normal(jnp.zeros(2), 1.0).to_event(1))

    def count(draws: int) -> int:
        traced.clear()
        settings = Hmc(chains=2, warmup=60, draws=draws, trajectory_length=1.0)
        infer(Target("counted", numpyro_model=model), settings, seed=1)
        return len(traced)

    assert count(60) == count(330)


def test_the_clock_is_read_when_the_work_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """JAX computes behind the caller's back: at every reading, nothing may still be at work."""
    settings = Hmc(chains=1, warmup=400, draws=50, trajectory_length=200.0)
    job = Job(known_target("numpyro"), settings, "numpyro", 1, ProgressBars(False))
    runner = NumpyroChains(job)
    idle = []

    def clock() -> float:
        idle.append(all(array.is_ready() for array in jax.live_arrays()))
        return time.perf_counter()

    monkeypatch.setattr("onebasin.inference.mcmc.walk.time", SimpleNamespace(perf_counter=clock))
    place = ChainPlace(0, Gathered(1, settings.draws))
    runner(place, threading.Event())
    assert idle == [True, True, True]
    # Eight times the iterations, and adaptation's shorter steps beside.
    chain = place.standing
    assert chain.warmup_seconds > 2 * chain.sampling_seconds > 0


def test_float32_gives_float32_draws() -> None:
    settings = Nuts(chains=1, warmup=100, draws=50, dtype="float32")
    post = infer(known_target("numpyro"), settings, seed=1).posterior
    assert post["tau"].dtype == np.float32
