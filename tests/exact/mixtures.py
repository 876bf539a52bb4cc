"""Small models other than networks, one per kind of constraint: simplex, interval, ordered, Cholesky factor.

Mixtures y ~ theta_1 N(mu_1, 1) + theta_2 N(mu_2, 1), mu ~ N(0, 2^2), weights ~ Beta(2, 2); proportions with a Dirichlet
prior, whose posterior also has a closed form; and a correlation with a common standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import onebasin as ob
from onebasin.models import Target
from onebasin.models.transforms.transforms import OrderedNormal

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


def _mixture(
    name: str, model: Callable[[], None], symmetry: str = "", *, ordered: bool = False
) -> Case:
    simplex = name == "simplex"

    def place(
        first: np.ndarray, second: np.ndarray, share: np.ndarray
    ) -> tuple[Values, np.ndarray]:
        mu = np.stack([first, first + second if ordered else second], 1)
        theta = np.stack([share, 1 - share], 1) if simplex else share
        return {"mu": mu, "theta": theta}, np.zeros(len(first))

    def log_density(values: Values) -> np.ndarray:
        share = values["theta"][:, 0] if simplex else values["theta"]
        return _log_mixture(values["mu"], share) + (math.log(2) if ordered else 0)

    def shown(values: Values) -> tuple[np.ndarray, np.ndarray]:
        first, second = values["mu"].T
        return first, second - first if ordered else second

    return Case(
        name=name,
        target=lambda chart: ob.numpyro_model(model, symmetry=symmetry or (), name=f"exact-{name}"),
        charts=(name,),
        size=3,
        log_density=log_density,
        place=place,
        axes=(MEAN, axis(0, 12, 12) if ordered else MEAN, SHARE),
        labels=("mu[0]", "mu[1] - mu[0]" if ordered else "mu[1]"),
        shown=shown,
        predicted=lambda values: {"spread": np.abs(np.diff(values["mu"], axis=1)[:, 0])},
        compared=("mu", "theta"),
    )


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

    return Case(
        name="proportions",
        target=lambda chart: Target("exact-proportions", numpyro_model=model),
        charts=("proportions",),
        size=2,
        log_density=log_density,
        place=place,
        axes=(SHARE, SHARE),
        labels=("p[0]", "p[1] / (1 - p[0])"),
        shown=lambda v: (v["p"][:, 0], v["p"][:, 1] / (1 - v["p"][:, 0])),
        predicted=lambda values: {},
        compared=("p",),
    )


def _correlation() -> Case:
    def model() -> None:
        factor = numpyro.sample("L", dist.LKJCholesky(2, 2.0))
        tau = numpyro.sample("tau", dist.HalfNormal(2.0))
        scale = tau * factor
        numpyro.sample(
            "y",
            dist.MultivariateNormal(jnp.zeros(PAIRS.shape), scale_tril=scale),
            obs=jnp.asarray(PAIRS),
        )

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

    return Case(
        name="correlation",
        target=lambda chart: Target("exact-correlation", numpyro_model=model),
        charts=("correlation",),
        size=2,
        log_density=log_density,
        place=place,
        axes=(axis(-1, 1, 12), Axis((0, 0.2, 0.5, 0.75, 1, 1.5, 2, 3, 4.5, 6, 8))),
        labels=("L[1, 0]", "tau"),
        shown=lambda v: (v["L"][:, 1, 0], v["tau"]),
        predicted=lambda values: {},
        compared=("L", "tau"),
    )


MAKERS: dict[str, Callable[[], Case]] = {
    "simplex": lambda: _mixture("simplex", _simplex, "mu,theta"),
    "interval": lambda: _mixture("interval", _interval, "mu,1-theta"),
    "ordered": lambda: _mixture("ordered", _ordered, ordered=True),
    "proportions": _proportions,
    "correlation": _correlation,
}
