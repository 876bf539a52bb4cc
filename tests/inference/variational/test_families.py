"""Families against dense normal distributions of the same mean and covariance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from onebasin.inference.variational.gaussians import (
    GAUSSIANS,
    GaussianFamily,
    MeanField,
    Parameters,
)

from .problems import layout


def made(name: str, size: int = 5) -> tuple[GaussianFamily, Parameters]:
    """A family with parameters that are nothing special."""
    family = GAUSSIANS[name](size)
    p = family.initial(jnp.zeros(size), 0.5)
    keys = jax.random.split(jax.random.key(0), len(p))
    noise = zip(sorted(p), keys, strict=True)
    return family, {n: p[n] + 0.3 * jax.random.normal(key, p[n].shape) for n, key in noise}


def dense(family: GaussianFamily, p: Parameters) -> multivariate_normal:
    """The normal distribution that `transform` makes, from its derivative by the noise."""
    by_noise = jax.jacobian(lambda eps: family.transform(p, eps[None])[0])
    scale = np.asarray(by_noise(jnp.zeros(family.size)))
    return multivariate_normal(np.asarray(p["loc"]), scale @ scale.T)


@pytest.mark.parametrize("name", GAUSSIANS)
def test_a_family_is_the_normal_distribution_of_its_transform(name):
    """Log density and entropy, what it starts as, and what is kept of it and restored."""
    family, p = made(name)
    points = np.random.default_rng(0).normal(size=(5, family.size))
    normal, found = dense(family, p), family.log_density(p, jnp.asarray(points))
    np.testing.assert_allclose(found, normal.logpdf(points), rtol=1e-10)
    assert float(family.entropy(p)) == pytest.approx(normal.entropy(), rel=1e-10)
    again = family.restore({n: v for n, (_, v) in family.describe(p).items()})
    np.testing.assert_allclose(family.log_density(again, jnp.asarray(points)), found, rtol=1e-10)
    start = family.initial(jnp.zeros(family.size), 0.1)
    np.testing.assert_allclose(dense(family, start).cov, 0.01 * np.eye(5), rtol=1e-10)


def test_ratios_are_those_of_exchanged_parts():
    """M_ij + M_ji is the change of log q where parts i and j change places."""
    of = layout("one layer")
    family, p = made("meanfield", of.density.size)
    assert isinstance(family, MeanField)
    draws = jax.random.normal(jax.random.key(1), (4, family.size))
    ratios = np.asarray(family.ratios(p, draws, of.columns(of.blocks[0])).total)
    swap = [(jnp.array([1, 0, 2, 3]), jnp.ones(4))]
    moved = jax.jit(jax.vmap(lambda w: of.act(swap, w)))(draws)
    change = family.log_density(p, moved) - family.log_density(p, draws)
    np.testing.assert_allclose(ratios[:, 0, 1] + ratios[:, 1, 0], change, rtol=1e-9)
    np.testing.assert_allclose(np.diagonal(ratios, axis1=1, axis2=2), 0, atol=1e-12)
