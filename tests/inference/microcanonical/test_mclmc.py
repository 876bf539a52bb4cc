"""Microcanonical chains, and the identities that reveal their bias."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

from onebasin.inference import Mclmc, infer, mclmc
from onebasin.inference.density.network import density_of
from onebasin.inference.density.numpyro import NumpyroDensity
from onebasin.inference.microcanonical.dynamics import Identities
from onebasin.models import Target
from onebasin.posteriors.view import as_view

from ..known import assert_known, assert_mean, known_target

SMALL = Mclmc(chains=2, warmup=300, draws=60, thin=2)


def scaled(sds: tuple[float, ...]) -> Target:
    def model() -> None:
        numpyro.sample("x", dist.Normal(0.0, jnp.asarray(sds)).to_event(1))

    return Target(name="scaled", numpyro_model=model)


@pytest.mark.full
def test_adjusted_has_the_known_moments():
    settings = Mclmc(adjusted=True, warmup=600, draws=1500, thin=2)
    tree = infer(known_target("numpyro"), settings, seed=2)
    assert "stein_identities" not in tree.attrs  # there is no bias to look for
    assert_known(tree.posterior)


@pytest.mark.full
def test_unadjusted_bias_falls_with_the_energy_variance():
    sds = np.geomspace(0.1, 10.0, 10)  # which only a metric learnt can follow
    how = {"warmup": 4000, "draws": 600, "seed": 1}
    rough, fine = (mclmc(scaled(tuple(sds)), energy_variance=v, **how) for v in (1.0, 1e-5))
    spreads = [(tree.posterior["x"].to_numpy() / sds).var((0, 1)) for tree in (rough, fine)]
    off = [np.abs(spread - 1).mean() for spread in spreads]
    assert off[0] > 0.1  # the bias is there to be seen
    assert off[1] < 0.06  # twice the Monte Carlo error of a variance
    assert_mean((fine.posterior["x"].to_numpy() / sds)[..., 0] ** 2, 1.0)
    found = fine.sample_stats["energy_variance"].mean()
    assert 0.5e-5 < found < 5e-5
    by_gradients = [json.loads(tree.attrs["stein_identities"])["spread"] for tree in (rough, fine)]
    assert by_gradients[0]["least"] > 0.1  # the gradients see it too
    assert by_gradients[1]["least"] == 0


@pytest.mark.full
def test_single_precision_is_kept_and_each_chain_tunes_its_own_steps():
    tree = infer(scaled((1.0, 2.0)), replace(SMALL, dtype="float32"), seed=3)
    assert tree["posterior"]["x"].dtype == np.float32
    stats = tree["sample_stats"]
    assert (stats["n_steps"] == 2).all()
    assert len(set(stats["step_size"].to_numpy()[:, -1])) == 2
    assert (stats["step_size"] == stats["step_size"][:, :1]).all()


@pytest.mark.full
def test_a_step_that_is_not_finite_is_not_taken():
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("wall", jnp.where(x[0] > 1.0, jnp.nan, 0.0))

    settings = Mclmc(chains=2, warmup=500, draws=200, metric="unit", init_radius=0.5)
    tree = infer(Target(name="wall", numpyro_model=model), settings, seed=1)
    assert int(tree["sample_stats"]["diverging"].sum()) > 0
    assert float(tree["posterior"]["x"][..., 0].max()) <= 1.0
    assert np.isfinite(tree["sample_stats"]["lp"]).all()


SCALES = np.array([0.01, 1.0, 100.0])
CENTRE = 1000.0
CORRELATION = 0.8


def model() -> None:
    """Normal coordinates far from zero, of unlike scales; a positive one; and two that go together."""
    numpyro.sample("x", dist.Normal(CENTRE, jnp.asarray(SCALES)).to_event(1))
    numpyro.sample("tau", dist.LogNormal(0.0, 0.5))
    covariance = jnp.array([[1.0, CORRELATION], [CORRELATION, 1.0]])
    numpyro.sample("pair", dist.MultivariateNormal(jnp.zeros(2), covariance))


@cache
def density() -> NumpyroDensity:
    """The density of the model, when a test first asks for it."""
    return density_of(Target("normal", numpyro_model=model))


@cache
def identities() -> Identities:
    return Identities(density())


@cache
def heights() -> Callable[[dict[str, np.ndarray]], jax.Array]:
    """Log densities of values (chain, draw, ...)."""
    return jax.jit(jax.vmap(jax.vmap(lambda v: density().log_density(density().unconstrain(v)))))


def draws(seed: int, *, shift: float = 0.0, widen: float = 1.0, count: int = 1000) -> xr.DataTree:
    """Four chains of independent draws of the target; `shift` moves x[0] and `widen` scales x[2], in its sds."""
    rng = np.random.default_rng(seed)
    x = CENTRE + SCALES * rng.standard_normal((4, count, 3)) * [1, 1, widen]
    x[..., 0] += shift * SCALES[0]
    root = np.linalg.cholesky([[1, CORRELATION], [CORRELATION, 1]])
    values = {
        "x": x,
        "tau": np.exp(0.5 * rng.standard_normal((4, count))),
        "pair": rng.standard_normal((4, count, 2)) @ root.T,
    }
    return as_view({"posterior": values, "sample_stats": {"lp": heights()(values)}}).tree


def test_intervals_of_true_draws_leave_zero_out_at_the_stated_rate():
    """Of 40 posteriors at 1 %, 3 or more false alarms have a chance below 1 %."""
    found = [identities().of(draws(seed, count=200)) for seed in range(40)]
    alarms = sum(f["shift"]["least"] > 0 or f["spread"]["least"] > 0 for f in found)
    assert alarms <= 2


@pytest.mark.parametrize(
    ("change", "kind", "coordinate", "by", "least"),
    [({"shift": 0.5}, "shift", "x[0]", 0.5, 0.35), ({"widen": 1.2}, "spread", "x[2]", 0.44, 0.2)],
)
def test_a_shift_and_a_variance_are_named_and_measured(change, kind, coordinate, by, least):
    found = identities().of(draws(1, **change))[kind]
    assert found["coordinate"] == coordinate
    assert least < found["least"] < by < found["most"]


def test_draws_of_other_labels_and_modes_are_no_bias():
    """A chain in either sign of a symmetric density satisfies both identities."""

    def two() -> None:
        x = numpyro.sample("x", dist.Normal(0.0, 5.0))
        numpyro.factor("modes", -0.5 * ((jnp.abs(x) - 4.0) / 0.2) ** 2)

    rng = np.random.default_rng(0)
    precision = 1 / 0.2**2 + 1 / 25
    x = 4.0 / 0.2**2 / precision + rng.standard_normal((4, 1000)) / np.sqrt(precision)
    x *= np.array([1, -1, 1, 1])[:, None]
    lp = -0.5 * ((np.abs(x) - 4) / 0.2) ** 2 - 0.5 * (x / 5) ** 2 - np.log(5 * np.sqrt(2 * np.pi))
    posterior = as_view({"posterior": {"x": x}, "sample_stats": {"lp": lp}}).tree
    found = Identities(density_of(Target("two", numpyro_model=two))).of(posterior)
    assert found is not None
    assert found["shift"]["least"] == found["spread"]["least"] == 0


def test_draws_of_another_density_are_not_judged_by_this_one():
    """What cannot be put back into the unconstrained space has another log density than was recorded."""
    posterior = draws(1)
    posterior["sample_stats"]["lp"] = posterior["sample_stats"]["lp"] + 1.0
    assert identities().of(posterior) is None
    for count in (5, 19):  # too few draws
        assert identities().of(draws(1, count=count)) is None
