"""Chains that are given their starts, metric and step size."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.base.progress import ProgressBars
from onebasin.inference import Hmc, Nuts
from onebasin.inference.contracts.method import Found, Job, bound, chosen
from onebasin.inference.density.network import density_of
from onebasin.inference.mcmc.given import Start, reordered, stan_places
from onebasin.models import BayesianNetwork, Network, Target

from ..known import known_target

CMDSTAN = pytest.param("cmdstan", marks=pytest.mark.stan)


def network() -> Target:
    x = np.random.default_rng(0).normal(size=(10, 2))
    return BayesianNetwork(Network(2, (3,), 1)).condition(x, x[:, 0], name="net")


RUNS = [
    ("program", "numpyro", True),
    ("program", "stanli", True),
    pytest.param("program", "cmdstan", False, marks=pytest.mark.stan),
    ("network", "stanli", True),
]
"""Names of the program's parameters are not in alphabetical order, nor is a network packed in that of its variables."""


def given(size: int, *, dense: bool = False, chains: int = 2, **more: Any) -> Start:
    rng = np.random.default_rng(3)
    metric = rng.uniform(0.5, 2.0, (chains, size))
    if dense:
        root = rng.normal(size=(chains, size, size)) / size
        metric = metric[:, None] * np.eye(size) + root @ root.transpose(0, 2, 1)
    where = rng.uniform(-0.5, 0.5, (chains, size))
    return Start(where, metric, np.geomspace(1e-9, 2e-9, chains), **more)


def run(target: Target, engine: str, settings: Nuts | Hmc, start: Start) -> Found:
    target = bound(target, engine)
    engine, implementation = chosen(target, type(settings), engine)
    job = Job(target, settings, engine, 1, ProgressBars(False), implementation, given=start)
    return settings.run(job)


@pytest.mark.parametrize(("kind", "engine", "dense"), RUNS)
def test_chains_stay_at_their_starts_with_tiny_steps_and_keep_their_metric(kind, engine, dense):
    target = network() if kind == "network" else known_target("stan")
    density = density_of(target)
    start = given(density.size, dense=dense)
    found = run(
        target, engine, Nuts(chains=2, warmup=3, draws=2, adapt=False, max_tree_depth=2), start
    )
    there = jax.vmap(density.constrain)(jnp.asarray(start.positions))
    for name, values in there.items():
        drawn = np.asarray(found.draws[name])
        np.testing.assert_allclose(drawn, np.repeat(np.asarray(values)[:, None], 2, 1), atol=1e-6)
    np.testing.assert_allclose(
        found.stats["step_size"], np.repeat(start.step_size[:, None], 2, 1), rtol=1e-12
    )
    kept = found.groups["adaptation"]
    metric = kept["inverse_metric"].values
    if kept.attrs["definition"] == "stan":
        metric = reordered(metric, stan_places(density))
    np.testing.assert_allclose(
        metric, start.inverse_metric, rtol=2e-5
    )  # CmdStan writes six figures


@pytest.mark.parametrize("engine", ["numpyro", "stanli", CMDSTAN])
def test_warmup_with_a_metric_adapts_the_step_size_alone(engine):
    target = known_target("numpyro" if engine == "numpyro" else "stan")
    start = replace(given(3, warmup=60), step_size=np.array([1e-3, 1e-3]))
    found = run(target, engine, Nuts(chains=2, warmup=500, draws=100), start)
    kept = found.groups["adaptation"]
    metric = kept["inverse_metric"].values
    np.testing.assert_allclose(metric, start.inverse_metric, rtol=2e-5)
    assert (kept["step_size"].values > 0.1).all()
    assert 0.6 < float(np.mean(found.stats["acceptance_rate"])) < 0.99
