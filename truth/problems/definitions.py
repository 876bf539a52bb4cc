"""The models in NumPyro. Arguments have the names of the Stan programs' data, sites those of their parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp

Array = Any
"""NumPy's or JAX's."""


def mixture_of_two(N: int, y: Array) -> None:
    """Two Gaussian components; `theta` is the share of the first."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5.0, 5.0))
    numpyro.sample("y", _mixed(jnp.stack([theta, 1 - theta]), mu, sigma, N), obs=y)


def mixture(num_components: int, num_obs: int, y: Array) -> None:
    """Gaussian components whose shares are a simplex."""
    weight = numpyro.sample("weight", dist.Dirichlet(jnp.full(num_components, 2.0)))
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([num_components]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0.0, 0.5).expand([num_components]).to_event(1))
    numpyro.sample("y", _mixed(weight, mu, sigma, num_obs), obs=y)


def _mixed(weight: jax.Array, mu: jax.Array, sigma: jax.Array, num_obs: int) -> dist.Distribution:
    weight, mu, sigma = (jnp.broadcast_to(v, (num_obs, *v.shape)) for v in (weight, mu, sigma))
    return dist.MixtureSameFamily(dist.Categorical(probs=weight), dist.Normal(mu, sigma))


def item_response(I: int, J: int, y: Array) -> None:  # noqa: E741
    """Two parameters an item: discrimination `a`, difficulty `b`; abilities `theta`."""
    theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([J]).to_event(1))
    a = numpyro.sample("a", dist.Normal(0.0, 2.0).expand([I]).to_event(1))
    b = numpyro.sample("b", dist.Normal(0.0, 3.0).expand([I]).to_event(1))
    logits = a[:, None] * theta[None, :] - b[:, None]
    numpyro.sample("y", dist.Bernoulli(logits=logits).to_event(2), obs=y)


def factors(
    num_factors: int, num_items: int, num_obs: int, scatter: Array, loading_scale: float
) -> None:
    """Factor analysis with sparse loadings, the factors summed out."""
    shape = [num_items, num_factors]
    loadings = numpyro.sample("L", dist.Laplace(0.0, loading_scale).expand(shape).to_event(2))
    psi = numpyro.sample("psi", dist.LogNormal(-0.5, 0.5).expand([num_items]).to_event(1))
    root = jnp.linalg.cholesky(loadings @ loadings.T + jnp.diag(psi**2))
    spread = jax.scipy.linalg.cho_solve((root, True), jnp.asarray(scatter))
    log_det = 2 * jnp.log(jnp.diagonal(root)).sum()
    numpyro.factor("scatter", -0.5 * (num_obs * log_det + jnp.trace(spread)))


def topics(
    num_topics: int, num_docs: int, num_words: int, counts: Array, alpha: float, beta: float
) -> None:
    """Latent Dirichlet allocation, summed over the tokens' topics."""
    topic, word = jnp.full(num_topics, float(alpha)), jnp.full(num_words, float(beta))
    theta = numpyro.sample("theta", dist.Dirichlet(topic).expand([num_docs]).to_event(1))
    phi = numpyro.sample("phi", dist.Dirichlet(word).expand([num_topics]).to_event(1))
    numpyro.factor("counts", (counts * jnp.log(theta @ phi)).sum())


def hidden_markov(num_states: int, num_obs: int, y: Array) -> None:
    """A hidden Markov model with normal emissions, summed over the paths."""
    ones = jnp.ones(num_states)
    start = numpyro.sample("start", dist.Dirichlet(ones))
    transition = numpyro.sample("A", dist.Dirichlet(ones).expand([num_states]).to_event(1))
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([num_states]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0.0, 0.5).expand([num_states]).to_event(1))
    emission = dist.Normal(mu[None, :], sigma[None, :]).log_prob(jnp.asarray(y)[:, None])
    # The tree of products of (state, state) matrices is log(N) deep; a scan is N steps, each of next to no work.
    first = jnp.log(start) + emission[0]
    steps = jnp.log(transition)[None] + emission[1:, None, :]
    while len(steps) > 1:
        pairs = steps[: len(steps) // 2 * 2].reshape(-1, 2, num_states, num_states)
        joined = logsumexp(pairs[:, 0, :, :, None] + pairs[:, 1, None, :, :], axis=2)
        steps = jnp.concatenate([joined, steps[len(pairs) * 2 :]])
    numpyro.factor("y", logsumexp(first[:, None] + steps[0]))


def latent_classes(K: int, J: int, I: int, y: Array) -> None:  # noqa: E741
    """Classes of persons with their own probabilities of yes to each item, summed over the classes."""
    share = numpyro.sample("share", dist.Dirichlet(jnp.full(K, 2.0)))
    q = numpyro.sample("q", dist.Beta(2.0, 2.0).expand([K, I]).to_event(2))
    yes = np.asarray(y, dtype=np.float64)
    part = yes @ jnp.log(q).T + (1 - yes) @ jnp.log1p(-q).T
    numpyro.factor("y", logsumexp(jnp.log(share)[None, :] + part, axis=1).sum())


def schools(J: int, y: Array, sigma: Array) -> None:
    """Rubin's eight schools, effects as multiples of their spread."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    eta = numpyro.sample("eta", dist.Normal(0.0, 1.0).expand([J]).to_event(1))
    theta = numpyro.deterministic("theta", mu + tau * eta)
    numpyro.sample("y", dist.Normal(theta, np.asarray(sigma, np.float64)).to_event(1), obs=y)
