"""Targets of fourteen kinds with random sizes and shapes and known moments: `python -m benchmarks.fits --kinds 5`."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.infer import Predictive
from scipy.stats import t as student

import onebasin as ob

from .simulated import (
    DRAWS,
    Model,
    banana,
    funnel,
    gaussian,
    horseshoe,
    independent,
    modes,
    ridge,
    scaled,
    spike_and_slab,
)

Values = dict[str, np.ndarray]
Made = Model | tuple[Model, Values]
"""A model whose prior is the posterior, or a model with draws from its posterior."""


def _student(rng: np.random.Generator) -> Made:
    """Make a Student t whose draws are its quantiles, with the two extreme ones moved so that the sd is exact."""
    nu, size = float(rng.choice([3, 3, 4, 5, 8])), int(rng.integers(1, 7))
    model = independent(x=dist.StudentT(nu).expand([size]).to_event(1))
    values = student.ppf((np.arange(20_000) + 0.5) / 20_000, nu)
    values[[0, -1]] = np.sqrt((20_000 * nu / (nu - 2) - (values[1:-1] ** 2).sum()) / 2) * np.array(
        [-1.0, 1.0]
    )
    return model, {"x": np.outer(values, np.ones(size))}


def _bounded(rng: np.random.Generator) -> Made:
    share = dist.Beta(rng.uniform(0.3, 1), rng.uniform(0.3, 2))
    return independent(
        u=dist.Uniform(-1, 3).expand([2]).to_event(1),
        share=share.expand([2]).to_event(1),
        e=dist.Exponential(rng.uniform(0.1, 5)),
        g=dist.Gamma(rng.uniform(0.3, 1), 1.0),
    )


def _skewed(rng: np.random.Generator) -> Made:
    return independent(
        l=dist.LogNormal(0, rng.uniform(0.3, 1)).expand([2]).to_event(1),
        i=dist.InverseGamma(rng.uniform(3.5, 8), 3.0).expand([2]).to_event(1),
        k=dist.Laplace(0, 2),
        q=dist.Gumbel(1, 2),
    )


def _counts(rng: np.random.Generator) -> Made:
    """Make rates and shares given few counts, with conjugate priors."""
    seen, trials = rng.poisson(3, 4), rng.integers(1, 20, 4)
    hits = np.minimum(seen, trials)
    return independent(
        rate=dist.Gamma(0.5 + seen, 1.0 + trials).to_event(1),
        share=dist.Beta(0.5 + hits, 0.5 + trials - hits).to_event(1),
    )


def _groups(rng: np.random.Generator) -> Made:
    """Make centred groups with data, which are Gaussian given their scale; the scale is drawn from a grid."""
    count, top, noise = int(rng.integers(3, 10)), rng.uniform(0.5, 2), rng.uniform(0.2, 1.5)
    y = 0.5 * rng.normal() + top * abs(rng.normal()) * rng.normal(size=count)
    y += noise * rng.normal(size=count)

    def model() -> None:
        tau = numpyro.sample("tau", dist.HalfNormal(top))
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([count]).to_event(1))
        numpyro.sample("obs", dist.Normal(theta, noise).to_event(1), obs=jnp.asarray(y))

    grid = (np.arange(40_000) + 0.5) / 5000 * top
    variance = noise**2 + grid**2
    certain = 1 + count / variance
    mean = y.sum() / variance / certain
    log_density = -0.5 * (grid / top) ** 2 - 0.5 * count * np.log(variance)
    log_density -= 0.5 * (np.log(certain) + (y**2).sum() / variance - mean**2 * certain)
    probability = np.exp(log_density - log_density.max())
    row = rng.choice(len(grid), size=DRAWS, p=probability / probability.sum())
    tau, mu = grid[row], mean[row] + rng.normal(size=DRAWS) / np.sqrt(certain[row])
    spread = 1 / (1 / tau**2 + 1 / noise**2)
    centre = spread[:, None] * (mu[:, None] / tau[:, None] ** 2 + y / noise**2)
    theta = centre + np.sqrt(spread)[:, None] * rng.normal(size=centre.shape)
    return model, {"tau": tau, "mu": mu, "theta": theta}


KINDS: dict[str, Callable[[np.random.Generator], Made]] = {
    "gaussian": lambda r: gaussian(int(r.integers(2, 40)), 10 ** r.uniform(0, 6)),
    "funnel": lambda r: funnel(r.uniform(0.3, 2.5), int(r.integers(1, 9))),
    "banana": lambda r: banana(r.uniform(0.05, 1.5), r.uniform(0.3, 1)),
    "student": _student,
    "modes": lambda r: modes(
        r.uniform(0.5, 0.95), r.uniform(5, 14), int(r.integers(1, 5)), r.uniform(0.5, 3)
    ),
    "horseshoe": lambda r: horseshoe(int(r.integers(1, 6))),
    "hierarchy": lambda r: scaled(int(r.integers(2, 11))),
    "groups": _groups,
    "ridge": lambda r: ridge(r.uniform(0.1, 1), r.uniform(0.1, 0.5)),
    "bounded": _bounded,
    "dirichlet": lambda r: independent(
        w=dist.Dirichlet(jnp.full(int(r.integers(3, 8)), r.uniform(0.3, 2)))
    ),
    "skewed": _skewed,
    "counts": _counts,
    "spike": lambda r: spike_and_slab(int(r.integers(1, 5))),
}


def made(kind: str, number: int) -> tuple[ob.Target, Values]:
    """Return a target of a kind, and draws from its posterior."""
    found = KINDS[kind](np.random.default_rng([number, *kind.encode()]))
    if isinstance(found, tuple):
        model, draws = found
    else:
        model = found
        drawn = Predictive(model, num_samples=DRAWS)(jax.random.key(number))
        draws = {name: np.asarray(values) for name, values in drawn.items()}
    return ob.Target(f"{kind}-{number}", numpyro_model=model), draws
