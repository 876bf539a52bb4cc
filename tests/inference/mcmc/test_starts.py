"""Chains that start at the best of several optima, where random starts get stuck in a mode of no weight."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

from onebasin.base.errors import InferenceError
from onebasin.base.progress import ProgressBars
from onebasin.inference import Nuts, infer
from onebasin.inference.contracts.method import Job
from onebasin.inference.density.network import density_of
from onebasin.inference.mcmc.numpyro import Course, NumpyroChains, chain_starts
from onebasin.inference.mcmc.optimum import BestOptimum
from onebasin.inference.mcmc.stan_start import best_optimum, seeds_of
from onebasin.models import Target
from onebasin.stan import stan_program
from onebasin.stan.run import make_ready

from ..known import MEAN, PROGRAMS, RATE, SHAPE, known_target

DEPTH = 20.0
"""The lower mode has exp(-20) of the other's probability."""


def _two_modes() -> None:
    x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.real, (), ()))
    low = dist.Normal(-5.0, 0.5).log_prob(x) - DEPTH
    numpyro.factor("modes", jnp.logaddexp(dist.Normal(5.0, 0.5).log_prob(x), low))
    numpyro.sample("other", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))


def two_modes() -> Target:
    return stan_program(PROGRAMS / "two_modes.stan", {"depth": DEPTH})


@pytest.mark.full
def test_optimum_keeps_chains_out_of_a_mode_without_weight():
    """The negative control: from random starts some of the same chains never leave the lower mode."""
    stuck = Nuts(chains=4, warmup=100, draws=100)
    best = replace(stuck, init="optimum")
    density = density_of(Target("two modes", numpyro_model=_two_modes))
    random, optimum = (
        jax.vmap(density.unravel)(chain_starts(density, s, 3))["x"] for s in (stuck, best)
    )
    assert 0 < (random < 0).sum() < 4
    np.testing.assert_allclose(optimum, 5.0, atol=1e-4)
    random, optimum = (
        infer(two_modes(), s, engine="stanli", seed=3).posterior for s in (stuck, best)
    )
    assert 0 < (random["x"].mean("draw") < 0).sum() < 4
    assert (optimum["x"] > 0).all()
    np.testing.assert_allclose(optimum["x"].mean(), 5.0, atol=0.2)
    np.testing.assert_allclose(
        optimum["other"].mean(("chain", "draw")), [1 / 6, 1 / 3, 0.5], atol=0.1
    )


@pytest.mark.parametrize("engine", ["stanli", "cmdstan"])
def test_stans_optimum_is_that_of_the_unconstrained_density(tmp_path, engine):
    """Without the Jacobian tau would be (shape - 1) / rate."""
    ready = make_ready(known_target("stan"), tmp_path, engine=engine)
    init = best_optimum(ready, tmp_path, init_radius=2.0, seeds=[1, 2])
    values = json.loads(init.read_text())
    np.testing.assert_allclose(values["x"], MEAN, atol=1e-3)
    assert values["tau"] == pytest.approx(SHAPE / RATE, rel=1e-3)


def test_no_finite_optimum_is_an_error_in_a_line():
    search = BestOptimum(lambda v: v[0] * jnp.nan)
    with pytest.raises(InferenceError, match=r"from 3 starting points .* raise `init_starts`"):
        search(jnp.arange(3.0)[:, None])
    settings = Nuts(chains=1, warmup=10, draws=10, init="optimum", init_starts=2)
    target = stan_program(PROGRAMS / "broken.stan", {"always": 1})
    with pytest.raises(InferenceError, match=r"^No optimum was found from 2 starting points.*$"):
        infer(target, settings, engine="stanli")


def test_a_chain_from_an_optimum_does_not_depend_on_how_many_run():
    def draws(chains: int) -> np.ndarray:
        settings = Nuts(chains=chains, warmup=50, draws=20, init="optimum", init_starts=3)
        return infer(two_modes(), settings, seed=5).posterior["x"].to_numpy()

    alone, among = draws(1), draws(3)
    np.testing.assert_array_equal(alone[0], among[0])
    assert not np.array_equal(among[0], among[1])


def test_seeds_of_starts_differ_and_do_not_depend_on_their_number():
    assert len({s for chain in range(4) for s in seeds_of(1, chain, 10)}) == 40
    assert seeds_of(1, 2, 3) == seeds_of(1, 2, 10)[:3]
    assert seeds_of(1, 2, 3) != seeds_of(2, 2, 3)


def test_first_steps_are_as_long_as_their_variances_say(tmp_path):
    """Before anything is adapted: of a narrow Gaussian, steps of unit length are rejected."""

    def model() -> None:
        numpyro.sample("x", dist.Normal(0, 0.01).expand([4]).to_event(1))

    target = Target("narrow", numpyro_model=model)
    density, settings = density_of(target), Nuts(chains=2, warmup=100, draws=1)
    for variances in (jnp.full((2, 4), 1e-4), None):
        course = Course(density, jnp.zeros((2, 4)), density.quantities, variances=variances)
        runner = NumpyroChains(Job(target, settings, "numpyro", 1, ProgressBars(False)), course)
        for number in range(2):
            rate = runner.advance(runner.start(number), 0, 1, keep=False)[2]["acceptance_rate"][0]
            assert rate < 1e-6 if variances is None else rate > 0.5
