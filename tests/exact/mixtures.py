"""Small models other than networks, one per kind of constraint: simplex, interval, ordered, Cholesky factor.

Mixtures y ~ theta_1 N(mu_1, 1) + theta_2 N(mu_2, 1), mu ~ N(0, 2^2), weights ~ Beta(2, 2); proportions with a Dirichlet
prior, whose posterior also has a closed form; and a correlation with a common standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import onebasin as ob
from onebasin.models import Target
from onebasin.models.networks.parametrisation import OrderedNormal

from .case import Case
from .plain import log_normal
from .quadrature import Axis, Values, axis

Y = np.array([-1.9, -1.2, -0.7, -0.1, 0.4, 1.1, 1.6, 2.2, 2.7])
COUNTS, CONCENTRATION = np.array([3.0, 1.0, 5.0]), np.array([1.0, 2.0, 1.5])
PAIRS = np.array([[1.2, 0.7], [-0.4, -0.9], [0.3, 0.8], [-1.5, -0.6], [0.9, 1.4], [-0.2, 0.5]])
MEAN_SD = 2.0
MEAN = axis(-8, 8, 16)
SHARE = Axis((0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1))


def _log_mixture(mu: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the log density of the data at means (point, 2) and the first weight (point,) of a mixture."""
    parts = [
        np.log(weight)[:, None] + log_normal(Y, mu[:, [k]], 1.0)
        for k, weight in enumerate((share, 1 - share))
    ]
    prior = math.log(6) + np.log(share * (1 - share)) + log_normal(mu, 0, MEAN_SD).sum(-1)
    return np.logaddexp(*parts).sum(-1) + prior


def _observe(mu, theta) -> None:
    parts = dist.Normal(mu[None], 1.0).log_prob(jnp.asarray(Y)[:, None])
    numpyro.factor("y", jnp.sum(jnp.logaddexp(*(jnp.log(theta)[None] + parts).T)))


def _simplex() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, MEAN_SD).expand([2]).to_event(1))
    _observe(mu, numpyro.sample("theta", dist.Dirichlet(jnp.array([2.0, 2.0]))))


def _interval() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, MEAN_SD).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(2.0, 2.0))
    _observe(mu, jnp.stack([theta, 1 - theta]))


def _ordered() -> None:
    mu = numpyro.sample("mu", OrderedNormal(MEAN_SD, 2))
    theta = numpyro.sample("theta", dist.Beta(2.0, 2.0))
    _observe(mu, jnp.stack([theta, 1 - theta]))


def _mixture(name, model, symmetry="", *, ordered=False):
    simplex = name == "simplex"

    def place(first, second, share):
        mu = np.stack([first, first + second if ordered else second], 1)
        theta = np.stack([share, 1 - share], 1) if simplex else share
        return {"mu": mu, "theta": theta}, np.zeros(len(first))

    def log_density(values: Values) -> np.ndarray:
        share = values["theta"][:, 0] if simplex else values["theta"]
        return _log_mixture(values["mu"], share) + (math.log(2) if ordered else 0)

    target = ob.numpyro_model(model, symmetry=symmetry or (), name=f"exact-{name}")
    axes = (MEAN, axis(0, 12, 12) if ordered else MEAN, SHARE)

    def spread(values: Values) -> dict[str, np.ndarray]:
        return {"spread": np.abs(np.diff(values["mu"], axis=1)[:, 0])}

    own = (log_density, place, axes, ("mu", "theta"), spread)
    return Case(name, lambda _: target, (name,), 3, *own)


def _alone(name: str, model: Callable[[], None], *rest: Any) -> Case:
    target = Target(f"exact-{name}", numpyro_model=model)
    return Case(name, lambda _: target, (name,), 2, *rest)


def _proportions() -> Case:
    def model() -> None:
        p = numpyro.sample("p", dist.Dirichlet(jnp.asarray(CONCENTRATION)))
        numpyro.factor("y", jnp.sum(jnp.asarray(COUNTS) * jnp.log(p)))

    def place(first: np.ndarray, rest: np.ndarray) -> tuple[Values, np.ndarray]:
        p = np.stack([first, (1 - first) * rest, (1 - first) * (1 - rest)], 1)
        return {"p": p}, np.log1p(-first)

    def log_density(values: Values) -> np.ndarray:
        constant = math.lgamma(CONCENTRATION.sum()) - sum(map(math.lgamma, CONCENTRATION))
        return np.log(values["p"]) @ (COUNTS + CONCENTRATION - 1) + constant

    return _alone("proportions", model, log_density, place, (SHARE, SHARE), ("p",))


def _correlation() -> Case:
    def model() -> None:
        factor = numpyro.sample("L", dist.LKJCholesky(2, 2.0))
        tau = numpyro.sample("tau", dist.HalfNormal(2.0))
        scale = tau * factor
        both = dist.MultivariateNormal(jnp.zeros(PAIRS.shape), scale_tril=scale)
        numpyro.sample("y", both, obs=jnp.asarray(PAIRS))

    def place(rho: np.ndarray, tau: np.ndarray) -> tuple[Values, np.ndarray]:
        factor = np.zeros((len(rho), 2, 2))
        factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = 1, rho, np.sqrt(1 - rho**2)
        return {"L": factor, "tau": tau}, np.zeros(len(rho))

    def log_density(values: Values) -> np.ndarray:
        rho, tau = values["L"][:, 1, 0], values["tau"]
        prior = math.log(0.75) + np.log1p(-(rho**2)) + math.log(2) + log_normal(tau, 0, 2.0)
        given = rho[:, None] * PAIRS[:, 0]  # The mean of the second, given the first.
        sd = (tau * np.sqrt(1 - rho**2))[:, None]
        return prior + (
            log_normal(PAIRS[:, 0], 0, tau[:, None]) + log_normal(PAIRS[:, 1], given, sd)
        ).sum(-1)

    axes = axis(-1, 1, 12), Axis((0, 0.2, 0.5, 0.75, 1, 1.5, 2, 3, 4.5, 6, 8))
    return _alone("correlation", model, log_density, place, axes, ("L", "tau"))


MAKERS: dict[str, Callable[[], Case]] = {
    "simplex": lambda: _mixture("simplex", _simplex, "mu,theta"),
    "interval": lambda: _mixture("interval", _interval, "mu,1-theta"),
    "ordered": lambda: _mixture("ordered", _ordered, ordered=True),
    "proportions": _proportions,
    "correlation": _correlation,
}
