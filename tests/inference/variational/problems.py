"""Targets with interchangeable components, small enough to enumerate every group element."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.special import logsumexp
from numpyro import distributions as dist

from onebasin.inference.variational.gaussians import Element, SymmetryLayout, layout_of
from onebasin.models import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NetworkTarget,
    Parametrisation,
    Target,
)
from onebasin.models.symmetry.blocks import Complement, Exchangeable, Flip, as_symmetry

TWO_MODES = np.array([1.5, -0.5])
SPREAD = 0.3


def regression(hidden=(3,), *, activation="relu", num_obs=12):
    """Return a network conditioned on simulated data."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(num_obs, 2))
    y = np.sin(2 * x[:, :1]) + 0.3 * rng.normal(size=(num_obs, 1))
    return BayesianNetwork(Network(2, hidden, 1, activation), Gaussian()).condition(x, y)


def broken(*, skip=None, biases="free"):
    """Return two layers whose symmetry is broken as in Kurle et al. 2021."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, size=(10, 1))
    y = np.sinc(3 * x) + 0.2 * rng.normal(size=(10, 1))
    network, ways = Network(1, (3, 3), 1, "selu", skip=skip), Parametrisation("free", biases)
    return BayesianNetwork(network, Gaussian(), parametrisation=ways).condition(x, y)


def classification(num_obs: int = 24) -> NetworkTarget:
    """Return a classifier with three classes."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(num_obs, 3))
    network = Network(3, (4,), 3, "relu")
    return BayesianNetwork(network, Categorical()).condition(x, np.argmax(x, axis=1))


@cache
def mixture() -> Target:
    """Return a mixture of three normal components with weights, means and scales."""
    rng = np.random.default_rng(3)
    y = jnp.asarray(rng.normal(size=30) + np.repeat([-4.0, 0.0, 4.0], 10))

    def model() -> None:
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.array([2.0, 2.0, 2.0])))
        mu = numpyro.sample("mu", dist.Normal(0.0, 3.0).expand([3]).to_event(1))
        sigma = numpyro.sample("sigma", dist.LogNormal(0.0, 1.0).expand([3]).to_event(1))
        parts = dist.Normal(mu[None, :], sigma[None, :]).log_prob(y[:, None])
        numpyro.factor("y", jnp.sum(logsumexp(parts + jnp.log(theta)[None, :], axis=1)))

    symmetry = (Exchangeable({"theta": 0, "mu": 0, "sigma": 0}),)
    return Target("mixture", numpyro_model=model, symmetry=symmetry)


@cache
def apart() -> Target:
    """Return two components as separate parameters next to a fixed one, with two entries of the weights and a sign."""
    y = jnp.asarray(np.random.default_rng(4).normal(size=20) + np.repeat([-3.0, 3.0], 10))

    def model() -> None:
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.array([2.0, 2.0, 3.0])))
        mu1, mu2 = (numpyro.sample(f"mu{k}", dist.Normal(0.0, 3.0)) for k in (1, 2))
        tilt = numpyro.sample("tilt", dist.Normal(0.0, 1.0))
        numpyro.deterministic("share", theta / theta.sum())
        mu = jnp.stack([mu1 + tilt, mu2 - tilt, jnp.zeros(())])
        parts = dist.Normal(mu[None, :], 1.0).log_prob(y[:, None])
        numpyro.factor("y", jnp.sum(logsumexp(parts + jnp.log(theta)[None, :], axis=1)))

    symmetry = as_symmetry("mu1~mu2,theta[0]~theta[1],share[0]~share[1],+-tilt:")
    return Target("apart", numpyro_model=model, symmetry=symmetry)


@cache
def chain_of_states() -> Target:
    """Return a transition matrix whose two axes are permuted together, and the means of its states."""

    def model() -> None:
        rows = numpyro.sample("A", dist.Dirichlet(jnp.full((3, 3), 1.5)).to_event(1))
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        numpyro.factor("stay", jnp.sum(jnp.log(jnp.diagonal(rows)) * mu**2))

    symmetry = (Exchangeable({"A": (0, 1), "mu": 0}),)
    return Target("states", numpyro_model=model, symmetry=symmetry)


@cache
def binary_weight() -> Target:
    """Return two means whose exchange complements the weight."""

    def model() -> None:
        theta = numpyro.sample("theta", dist.Beta(2.0, 2.0))
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.factor("data", -jnp.square(theta * mu[0] + (1 - theta) * mu[1] - 1.0))

    symmetry = (Exchangeable({"mu": 0}, complements=("theta",)),)
    return Target("binary", numpyro_model=model, symmetry=symmetry)


@cache
def complemented() -> Target:
    """Return a weight that may be complemented."""

    def model() -> None:
        theta = numpyro.sample("theta", dist.Beta(0.5, 0.5))
        numpyro.factor("data", 4.0 * jnp.square(theta - 0.5))

    return Target("complement", numpyro_model=model, symmetry=(Complement("theta"),))


@cache
def item_response() -> Target:
    """Return abilities and discriminations with different lengths, which change sign together."""

    def model() -> None:
        theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        a = numpyro.sample("a", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.factor("data", -jnp.square(jnp.outer(theta, a) - b[None] - 0.5).sum())

    return Target("item response", numpyro_model=model, symmetry=(Flip(("theta", "a")),))


@cache
def two_modes() -> Target:
    """Return the average over both labellings of N(TWO_MODES, SPREAD^2 I), a symmetrised Gaussian; log evidence 0."""

    def model() -> None:
        prior = dist.Normal(0.0, 1.0).expand([2]).to_event(1)
        w = numpyro.sample("w", prior)
        one = dist.Normal(jnp.asarray(TWO_MODES), SPREAD).to_event(1)
        both = jnp.logaddexp(one.log_prob(w), one.log_prob(w[::-1])) - jnp.log(2.0)
        numpyro.factor("shape", both - prior.log_prob(w))

    return Target("two modes", numpyro_model=model, symmetry=(Exchangeable({"w": 0}),))


def parts_of_axes() -> Target:
    """Return pairs in a merged axis, followed by single numbers with signs."""

    def model() -> None:
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([7]).to_event(1))
        u = numpyro.sample("u", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        pairs = jnp.tanh(u * (w[:4].reshape(2, 2) @ jnp.array([1.0, -2.0])))
        numpyro.factor("shape", pairs.sum() - 0.1 * (w[4:] ** 4).sum())

    return Target("parts", numpyro_model=model, symmetry=as_symmetry(("w:0[*2,2],u", "+-w:0[4:7]")))


TARGETS = {
    "one layer": partial(regression, (4,)),
    "two layers": partial(regression, (3, 2)),
    "sign flips": partial(regression, (3,), activation="tanh"),
    "two layers, sign flips": partial(regression, (2, 2), activation="tanh"),
}
TARGETS |= {"classifier": classification, "mixture": mixture, "counterparts": apart}
TARGETS |= {"transition matrix": chain_of_states, "binary weight": binary_weight}
TARGETS |= {"complement": complemented, "whole signs": item_response, "two modes": two_modes}
TARGETS |= {"parts of axes": parts_of_axes}


@cache
def layout(name: str) -> SymmetryLayout:
    """Return the layout of one target, which the tests of a module share."""
    return layout_of(TARGETS[name]())


def by_sum(layout, family, p, draws):
    """Compute log |G| minus the log sum of q(g w) / q(w) over all elements."""
    draws = jnp.asarray(draws)

    @jax.jit
    @jax.vmap
    def moved(element: Element) -> jax.Array:
        return family.log_density(p, jax.vmap(lambda w: layout.act(element, w))(draws))

    terms = np.asarray(moved(layout.elements()))
    own = np.asarray(jax.jit(family.log_density)(p, draws))
    return np.log(len(terms)) - (np.logaddexp.reduce(terms, axis=0) - own)
