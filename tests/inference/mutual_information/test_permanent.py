"""The exact permanent against sums over all permutations, assignment at large ranges, and closed forms."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from onebasin.inference.mutual_information.estimators import log_permanent_and_marginals

from .cases import all_permutations, marginals_by_sum

RANGES = [1.0, 30.0, 1e3, 1e6]


def by_sum(matrix: np.ndarray) -> float:
    each = all_permutations(len(matrix))
    return logsumexp(matrix[np.arange(len(matrix)), each].sum(1))


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_permanent_and_marginals_are_those_of_the_sum(rng, size):
    matrix = 3 * rng.standard_normal((size, size))
    value, marginals = jax.jit(log_permanent_and_marginals)(jnp.asarray(matrix))
    np.testing.assert_allclose(value, by_sum(matrix), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(marginals, marginals_by_sum(matrix), rtol=1e-10, atol=1e-14)


def test_equal_entries_give_the_number_of_permutations():
    value, marginals = log_permanent_and_marginals(jnp.zeros((11, 11)))
    np.testing.assert_allclose(value, math.lgamma(12), rtol=1e-10)
    np.testing.assert_allclose(marginals, 1 / 11, rtol=1e-10)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_large_ranges_end_at_the_best_assignment(rng, dtype):
    matrices = np.stack([r * rng.uniform(-1, 1, (7, 7)) for r in RANGES])
    value, marginals = jax.jit(jax.vmap(log_permanent_and_marginals))(jnp.asarray(matrices, dtype))
    assert value.dtype == dtype
    assert np.isfinite(value).all() and np.isfinite(marginals).all()
    best = matrices[-1][linear_sum_assignment(-matrices[-1])].sum()
    rtol = 1e-10 if dtype == jnp.float64 else 1e-5
    np.testing.assert_allclose(value[-1], best, rtol=rtol)
    np.testing.assert_allclose(value, [by_sum(m) for m in matrices], rtol=rtol)
    # Entries near the diagonal's end round at 0.06 in single precision at 1e6, and P with them: sums still hold.
    np.testing.assert_allclose(marginals.sum(1), 1.0, rtol=rtol)
    np.testing.assert_allclose(marginals.sum(2), 1.0, rtol=rtol)
