"""Pairwise log ratios against densities written out in double precision, at any range; and pieces of the draws."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from onebasin.inference.mutual_information.estimators import LogRatios, log_ratios, mean_field

from .cases import parts

MEAN_FIELD = jax.jit(mean_field)
FLIPS = np.array([True, True, False, True])


def wide(seed: int, spread: float, dtype: type) -> list[np.ndarray]:
    """Draws, means and scales of six parts, two of them twins; representable in `dtype`."""
    rng = np.random.default_rng(seed)
    loc = 3.0 + spread * rng.standard_normal((6, 4))
    scale = rng.uniform(0.5, 2.0, (6, 4))
    loc[1], scale[1] = loc[0], scale[0]
    loc, scale = (array.astype(dtype).astype(float) for array in (loc, scale))
    draws = (loc + scale * rng.standard_normal((5, 6, 4))).astype(dtype)
    return [draws, loc, scale]


def naive(draws: np.ndarray, loc: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Entry (w, i, j) of log q_i(u_j), by SciPy in double precision."""
    return norm.logpdf(draws.astype(float)[:, None], loc[None, :, None], scale[None, :, None]).sum(
        -1
    )


def turned(draws: np.ndarray) -> np.ndarray:
    return np.where(FLIPS, -draws, draws)


def assert_same(found: LogRatios, expected: LogRatios, **tolerance: float) -> None:
    for name in ("total", "mean", "flip_probability"):
        if getattr(expected, name) is not None:
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), **tolerance, err_msg=name
            )
    assert (found.flip_probability is None) == (expected.flip_probability is None)


@pytest.mark.parametrize("flips", [False, True])
def test_mean_field_is_the_density_written_out(flips):
    case = wide(1, 1.0, np.float64)
    plus, minus = naive(*case), naive(turned(case[0]), *case[1:])
    expected = log_ratios(jnp.asarray(plus), jnp.asarray(minus) if flips else None)
    mask = jnp.asarray(FLIPS) if flips else None
    found = MEAN_FIELD(*map(jnp.asarray, case), flips=mask)
    assert_same(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_field_keeps_its_digits_at_any_range(spread, dtype):
    """Log ratios of up to 2e7 nats: errors in proportion to the largest; own entries are exactly zero."""
    case = wide(3, spread, dtype)
    expected = log_ratios(jnp.asarray(naive(*case))).total
    found = MEAN_FIELD(*(jnp.asarray(array, dtype) for array in case)).total
    assert found.dtype == dtype
    unit = np.finfo(dtype).eps
    error = np.abs(np.asarray(found, float) - expected)
    assert (np.diagonal(np.asarray(found), axis1=1, axis2=2) == 0.0).all()
    assert error.max() < 20 * unit * max(np.abs(expected).max(), 20.0)
    # Single entries lose what the squares of their own part and distribution are as numbers.
    size = (((case[0].astype(float) - case[1].mean(0)) / case[2].min()) ** 2).sum(-1)
    assert (error < 20 * unit * (size[:, None, :] + size[:, :, None] + 20.0)).all()


@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_flips_keep_their_digits_in_single_precision(spread):
    case = wide(4, spread, np.float32)
    plus, minus = naive(*case), naive(turned(case[0]), *case[1:])
    expected = log_ratios(jnp.asarray(plus), jnp.asarray(minus))
    found = MEAN_FIELD(*(jnp.asarray(a, np.float32) for a in case), flips=jnp.asarray(FLIPS))
    largest = np.abs(plus).max() + np.abs(minus).max()
    np.testing.assert_allclose(found.total, expected.total, rtol=1e-5, atol=1e-6 * largest)
    own = np.diagonal(np.asarray(found.total), axis1=1, axis2=2)
    truth = np.diagonal(np.asarray(expected.total), axis1=1, axis2=2)
    np.testing.assert_allclose(own, truth, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flips", [False, True])
def test_derivatives_are_those_of_the_density_written_out(flips):
    """All three derivatives of a random mean of the entries, against a plain formula's."""
    draws, loc, scale = map(jnp.asarray, wide(5, 1.0, np.float64))
    mask = jnp.asarray(FLIPS) if flips else None
    signs = jnp.where(jnp.asarray(FLIPS), -1.0, 1.0)
    weights = jax.random.normal(jax.random.key(0), (5, 6, 6))

    def plain(draws: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
        def density(u: jax.Array) -> jax.Array:
            standard = (u[:, None, :, :] - loc[None, :, None, :]) / scale[None, :, None, :]
            return jnp.sum(-0.5 * standard**2 - jnp.log(scale)[None, :, None, :], -1)

        ratios = log_ratios(
            density(draws), density(draws * signs[None, None, :]) if flips else None
        )
        return jnp.sum(weights * ratios.total) + jnp.sum(weights * ratios.mean)

    def found(draws: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
        ratios = mean_field(draws, loc, scale, flips=mask)
        return jnp.sum(weights * ratios.total) + jnp.sum(weights * ratios.mean)

    expected = jax.jit(jax.grad(plain, argnums=(0, 1, 2)))(draws, loc, scale)
    for mine, theirs in zip(
        jax.jit(jax.grad(found, argnums=(0, 1, 2)))(draws, loc, scale), expected, strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_flips_sum_over_signs():
    """And the mean is that over the sign's posterior, written out."""
    case = parts(2, 1.0, draws=4)
    plus, minus = (np.asarray(case.log_density(sign)) for sign in (1.0, -1.0))
    own = np.diagonal(plus, axis1=1, axis2=2)[:, None, :]
    ratios = case.ratios(flips=True)
    np.testing.assert_allclose(ratios.total, np.log(np.exp(plus) + np.exp(minus)) - own)
    share = np.exp(plus) / (np.exp(plus) + np.exp(minus))
    mean = share * (plus - own) + (1 - share) * (minus - own)
    np.testing.assert_allclose(ratios.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ratios.flip_probability, 1 - share, rtol=1e-9, atol=1e-12)
    assert case.ratios().flip_probability is None
    np.testing.assert_allclose(ratios.log_group_order, math.log(8))
