"""Priors on constrained sets are normalised there, and what they sample is what they state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from onebasin.models.transforms.transforms import OrderedNormal, UnitColumns


def test_ordered_normal_of_two_is_normalised():
    prior = OrderedNormal(1.7, 2)
    grid = np.linspace(-15, 15, 1001)
    low, high = np.meshgrid(grid, grid, indexing="ij")
    density = np.exp(prior.log_prob(jnp.stack([low, high], -1)))
    step = grid[1] - grid[0]
    # By symmetry the diagonal counts half.
    total = (np.triu(density, 1).sum() + 0.5 * np.trace(density)) * step**2
    np.testing.assert_allclose(total, 1, rtol=1e-8)


def test_ordered_normal_of_one_is_the_normal():
    b = jnp.array([[0.3], [-2.0]])
    expected = stats.norm(scale=0.5).logpdf(b[:, 0])
    np.testing.assert_allclose(OrderedNormal(0.5, 1).log_prob(b), expected, rtol=1e-10)


def test_ordered_normal_draws_are_order_statistics():
    prior = OrderedNormal(2.0, 3)
    b = np.asarray(prior.sample(jax.random.key(0), (4000,)))
    assert np.all(np.diff(b, axis=-1) > 0)
    for i in range(3):  # the i-th of three: its probability is Beta(i + 1, 3 - i)
        probability = stats.norm(scale=2.0).cdf(b[:, i])
        assert stats.kstest(probability, stats.beta(i + 1, 3 - i).cdf).pvalue > 1e-5


@pytest.mark.parametrize(
    ("dim", "area"), [(2, 2 * np.pi), (3, 4 * np.pi), (4, 2 * np.pi**2), (5, 8 * np.pi**2 / 3)]
)
def test_unit_columns_density_is_one_over_the_area(dim, area):
    prior = UnitColumns(dim, 3, "givens")
    w = prior.sample(jax.random.key(0), (2, 6))
    expected = np.full((2, 6), -3 * np.log(area))
    np.testing.assert_allclose(prior.log_prob(w), expected, rtol=1e-10)
