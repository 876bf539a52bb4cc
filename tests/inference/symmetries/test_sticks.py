"""Weights that are broken off a stick: components whose exchange hardly changes the density."""

import re

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.special import logsumexp

import onebasin as ob

Y = np.concatenate([np.linspace(-6, -2, 40), np.linspace(3, 7, 30)])
PIECES = 4


def model(second):
    def mixture():
        v = numpyro.sample("v", dist.Uniform(0.0, 1.0).expand([PIECES - 1]).to_event(1))
        numpyro.factor(
            "prior", ((jnp.asarray(second) - 1) * jnp.log1p(-v)).sum()
        )  # beta(1, second)
        mu = numpyro.sample("mu", dist.Normal(0, 5).expand([PIECES]).to_event(1))
        numpyro.sample("groups", dist.Normal(0, 1).expand([PIECES]).to_event(1))
        w = jnp.append(v, 1.0) * jnp.append(1.0, jnp.cumprod(1 - v))
        parts = dist.Normal(mu[None], 1.0).log_prob(jnp.asarray(Y)[:, None])
        numpyro.factor("y", logsumexp(jnp.log(w)[None] + parts, axis=1).sum())

    return ob.Target("sticks", numpyro_model=mixture)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("second", "least", "most"),
    [
        ([3.0, 2.0, 1.0], 0.0, 1e-6),  # weights of a uniform Dirichlet distribution
        ([1.0, 1.0, 1.0], 0.05, 3.0),
    ],
)
def test_an_exchange_changes_the_density_of_the_weights(second, least, most, seed):
    found = ob.find_symmetry(model(second), seed=seed)
    (near,) = (block for block in found.blocks if block.status == "near")
    assert near.moves == "mu:0 and v"
    assert found.symmetry == ()
    change = re.search(r"changes the log density by (\S+) nats", near.evidence[0])
    assert least <= float(change[1]) <= most


def test_shares_that_are_no_sticks_are_not_taken_for_them():
    def shares():
        v = numpyro.sample("v", dist.Uniform(0.0, 1.0).expand([PIECES - 1]).to_event(1))
        mu = numpyro.sample("mu", dist.Normal(0, 5).expand([PIECES]).to_event(1))
        level = jnp.where(jnp.arange(len(Y)) % 2, mu[0] + 9 * v[0], mu[1] - 5 * v[1] ** 2)
        numpyro.sample("y", dist.Normal(level, 1), obs=Y)

    found = ob.find_symmetry(ob.Target("shares", numpyro_model=shares), seed=1)
    assert [block for block in found.blocks if block.status == "near"] == []
