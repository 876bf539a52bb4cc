"""Families against dense normal distributions of the same mean and covariance."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from onebasin.inference.variational.gaussians import GaussianFamily, LowRank, family_of

from ...each import each
from .problems import layout


def made(name: str, target: str = "one layer") -> tuple[GaussianFamily, dict[str, jax.Array]]:
    """A family with parameters that are nothing special."""
    family = family_of(name, layout(target), 2)
    p = family.initial(jnp.zeros(family.size), 0.5)
    keys = jax.random.split(jax.random.key(0), len(p))
    noise = zip(sorted(p), keys, strict=True)
    return family, {n: p[n] + 0.3 * jax.random.normal(key, p[n].shape) for n, key in noise}


def dense(family: GaussianFamily) -> Callable[[dict[str, jax.Array]], multivariate_normal]:
    """The normal distribution that `transform` makes, from its derivative by the noise."""
    by_noise = jax.jit(jax.jacobian(lambda eps, p: family.transform(p, eps[None])[0]))

    def normal(p: dict[str, jax.Array]) -> multivariate_normal:
        scale = np.asarray(by_noise(jnp.zeros(family.noise), p))
        return multivariate_normal(np.asarray(p["loc"]), scale @ scale.T)

    return normal


@each("name", ["meanfield", "block", "lowrank"])
def test_a_family_is_the_normal_distribution_of_its_transform(name):
    """Log density and entropy, what it starts as, and what is kept of it and restored."""
    family, p = made(name)
    points = np.random.default_rng(0).normal(size=(5, family.size))
    log_density, normal_of = jax.jit(family.log_density), dense(family)
    normal, found = normal_of(p), log_density(p, jnp.asarray(points))
    np.testing.assert_allclose(found, normal.logpdf(points), rtol=1e-10)
    assert float(family.entropy(p)) == pytest.approx(normal.entropy(), rel=1e-10)
    again = family.restore({n: v for n, (_, v) in family.describe(p).items()})
    np.testing.assert_allclose(log_density(again, jnp.asarray(points)), found, rtol=1e-10)
    start = family.initial(jnp.zeros(family.size), 0.1)
    sds = np.sqrt(np.diag(normal_of(start).cov))
    # A low-rank start adds a tenth of the scale along each of two directions, at random.
    np.testing.assert_allclose(sds, 0.1, rtol=0.1 if name == "lowrank" else 1e-10)


@each("name", ["meanfield", "block"])
def test_ratios_are_those_of_exchanged_parts(name):
    """M_ij + M_ji is the change of log q where parts i and j change places."""
    (family, p), of = made(name), layout("one layer")
    draws = jax.random.normal(jax.random.key(1), (4, family.size))
    columns = of.columns(of.blocks[0])
    ratios = np.asarray(jax.jit(lambda p, w: family.ratios(p, w, columns).total)(p, draws))
    swap = [(jnp.array([1, 0, 2, 3]), jnp.ones(4))]
    moved = jax.jit(jax.vmap(lambda w: of.act(swap, w)))(draws)
    log_density = jax.jit(family.log_density)
    change = log_density(p, moved) - log_density(p, draws)
    np.testing.assert_allclose(ratios[:, 0, 1] + ratios[:, 1, 0], change, rtol=1e-9)
    np.testing.assert_allclose(np.diagonal(ratios, axis1=1, axis2=2), 0, atol=1e-12)


def test_block_family_has_covariances_within_parts_alone():
    family, p = made("block", "mixture")
    index = layout("mixture").columns(layout("mixture").blocks[0]).index
    covariance = dense(family)(p).cov
    within = np.zeros_like(covariance, bool)
    for row in index:
        within[np.ix_(row, row)] = True
    assert np.all(covariance[within] != 0)
    assert np.all(covariance[~within] == 0)


def test_what_shares_weights_or_couples_parts_is_refused():
    with pytest.raises(ValueError, match="more than one component"):
        family_of("block", layout("two layers"), 2)
    of = layout("one layer")
    size, columns = of.density.size, of.columns(of.blocks[0])
    with pytest.raises(ValueError, match="couples the components"):
        LowRank(size, 2).ratios({}, jnp.zeros((1, size)), columns)
