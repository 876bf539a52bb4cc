"""Marginals of fractional messages against their formula and the exact ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference.mutual_information.estimators import (
    exact,
    log_ratios,
    marginals,
    training_marginals,
)

from .cases import assert_derivative, parts


def test_derivative_through_sweeps_is_that_of_finite_differences(rng):
    matrix = rng.standard_normal((4, 4))
    weights = jnp.asarray(rng.standard_normal((4, 4)))

    @jax.jit
    def total(matrix: jax.Array) -> jax.Array:
        return jnp.sum(weights * marginals(matrix, sweeps=4))

    assert_derivative(total, matrix, [(0, 0), (3, 1)])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_training_marginals_are_near_the_exact_ones(dtype):
    """The error of the fraction c, measured: 0.136 at worst; neither the identity nor uniform would do."""
    ratios = parts(8, 5.0, draws=100, seed=3).ratios()
    truth = jax.jit(exact)(jax.random.key(0), ratios).marginals
    found = jax.jit(training_marginals)(jax.tree.map(lambda x: x.astype(dtype), ratios))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, truth, atol=0.15)
    assert np.abs(truth - jnp.eye(8)[None]).max() > 0.5 and np.abs(truth - 1 / 8).max() > 0.5


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3, 1e6])
def test_training_marginals_are_doubly_stochastic_at_any_range(rng, spread, dtype):
    """Columns of any matrix; rows too of matrices below their diagonals, as those of draws from q are."""
    matrix = jnp.asarray(spread * rng.standard_normal((6, 7, 7)), dtype)
    for density in (matrix, -jnp.abs(matrix) * (1.0 - jnp.eye(7, dtype=dtype))[None]):
        found = jax.jit(training_marginals)(log_ratios(density))
        assert found.dtype == dtype and (found >= 0).all()
        np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(found.sum(2), 1.0, rtol=1e-5)
    # The last one at the largest ranges is the identity.
    if spread > 1e5:
        np.testing.assert_allclose(found, np.broadcast_to(np.eye(7), found.shape), atol=1e-6)
