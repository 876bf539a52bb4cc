"""Targets of ten kinds with exact draws: models without data, whose prior is the posterior."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.infer import Predictive

import onebasin as ob

from .claims import Moments, moments

Model = Callable[[], None]
DRAWS = 400_000


def gaussian(size: int, condition: float) -> Model:
    """Return a Gaussian with a random orientation."""
    g = np.random.default_rng(size)
    turn = np.linalg.qr(g.normal(size=(size, size)))[0]
    root = jnp.asarray(turn * np.geomspace(1, condition**-0.5, size))

    def model() -> None:
        numpyro.sample("x", dist.MultivariateNormal(jnp.zeros(size), root @ root.T))

    return model


def independent(**sites: dist.Distribution) -> Model:
    """Return a model of independent variables."""

    def model() -> None:
        for name, distribution in sites.items():
            numpyro.sample(name, distribution)

    return model


def modes(share: float, apart: float, size: int = 3, ratio: float = 1.0) -> Model:
    """Return two distant modes: the first has the mass `share`, and the sds of the second are `ratio` times larger."""
    places = jnp.stack([jnp.zeros(size), jnp.full(size, apart)])
    sds = jnp.array([1.0, ratio])[:, None] * jnp.ones(size)
    parts = dist.Independent(dist.Normal(places, sds), 1)

    def model() -> None:
        weights = dist.Categorical(jnp.array([share, 1 - share]))
        numpyro.sample("x", dist.MixtureSameFamily(weights, parts))

    return model


def banana(bend: float, sd: float) -> Model:
    """Return a normal distribution bent along a parabola."""

    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.sample("y", dist.Normal(bend * (x**2 - 1), sd).to_event(1))

    return model


def funnel(sd: float, size: int) -> Model:
    """Return Neal's funnel."""

    def model() -> None:
        v = numpyro.sample("v", dist.Normal(0, sd))
        numpyro.sample("x", dist.Normal(0, jnp.exp(v / 2)).expand([size]).to_event(1))

    return model


def spike_and_slab(size: int) -> Model:
    """Return independent spike-and-slab coordinates."""
    parts = dist.Normal(jnp.zeros(2), jnp.array([0.02, 1.0]))

    def model() -> None:
        one = dist.MixtureSameFamily(dist.Categorical(jnp.array([0.5, 0.5])), parts)
        numpyro.sample("x", one.expand([size]).to_event(1))

    return model


def ridge(bend: float, sd: float) -> Model:
    """Return a narrow ridge along a curve."""

    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(3 / (1 + bend * x**2), sd))

    return model


def horseshoe(size: int) -> Model:
    """Return effects around zero, with one scale per effect and a common scale."""

    def model() -> None:
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        own = numpyro.sample("own", dist.LogNormal(0, 1).expand([size]).to_event(1))
        numpyro.sample("effect", dist.Normal(0, tau * own).to_event(1))

    return model


def scaled(size: int) -> Model:
    """Return a centred hierarchy with few groups and a weakly determined scale."""

    def model() -> None:
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.sample("theta", dist.Normal(mu, tau).expand([size]).to_event(1))

    return model


MODELS: dict[str, Model] = {
    "gaussian-60": gaussian(60, 1e4),
    "gaussian-5": gaussian(5, 1e8),
    "exponentials": independent(x=dist.Exponential(1).expand([4]).to_event(1)),
    "gammas": independent(x=dist.Gamma(0.5, 2).expand([3]).to_event(1), y=dist.InverseGamma(6, 3)),
    "bounded": independent(
        u=dist.Uniform(-1, 3).expand([3]).to_event(1), b=dist.Beta(0.5, 0.5).expand([2]).to_event(1)
    ),
    "dirichlet": independent(w=dist.Dirichlet(jnp.full(5, 0.7))),
    "modes-80": modes(0.8, 8.0),
    "modes-50-wide": modes(0.5, 12.0, 2, 3.0),
    "banana-mild": banana(0.3, 1.0),
    "banana": banana(2.0, 0.3),
    "student-5": independent(x=dist.StudentT(5).expand([3]).to_event(1)),
    "student-3": independent(x=dist.StudentT(3).expand([3]).to_event(1)),
    "funnel-mild": funnel(0.5, 3),
    "funnel": funnel(3.0, 9),
    "spike-and-slab": spike_and_slab(3),
    "hierarchy": scaled(8),
    "hierarchy-small": scaled(3),
    "ridge": ridge(0.5, 0.3),
    "horseshoe-prior": horseshoe(4),
    "counts": independent(rate=dist.Gamma(2.5, 4), share=dist.Beta(0.5, 7.5)),
    "skewed": independent(x=dist.LogNormal(0, 1), y=dist.Gumbel(1, 2), z=dist.Laplace(0, 2)),
}
EXACT = {
    f"student-{nu}": {f"x[{i}]": (0.0, (nu / (nu - 2)) ** 0.5) for i in range(3)} for nu in (3, 5)
}
"""Exact means and standard deviations, for targets whose tails make the moments of draws inaccurate."""


def target(name: str) -> ob.Target:
    """Return a target by name."""
    return ob.Target(name, numpyro_model=MODELS[name])


def known_moments(name: str) -> Moments:
    """Return the mean, sd and quantiles of every entry of a target."""
    found = moments(known_draws(name))
    return found | {n: (*exact, *found[n][2:]) for n, exact in EXACT.get(name, {}).items()}


def known_draws(name: str) -> dict[str, np.ndarray]:
    """Return independent draws of a target."""
    drawn = Predictive(MODELS[name], num_samples=DRAWS)(jax.random.key(7))
    return {key: np.asarray(value) for key, value in drawn.items()}
