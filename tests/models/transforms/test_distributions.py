"""Priors on constrained sets are normalised there, and what they sample is what they state."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from onebasin.models.transforms.distributions import OrderedNormal, UnitColumns
from onebasin.models.transforms.transforms import UNIT_COLUMN_CHARTS


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


def test_ordered_normal_keeps_leading_axes_and_tells_sorted_from_unsorted():
    prior = OrderedNormal(2.0, 3)
    b = prior.sample(jax.random.key(1), (4, 5))
    assert prior.log_prob(b).shape == (4, 5)
    np.testing.assert_allclose(prior.log_prob(b)[1, 2], prior.log_prob(b[1, 2]), rtol=1e-10)
    assert jnp.all(prior.support(b))
    assert not prior.support(b[0, 0, ::-1])


@pytest.mark.parametrize(
    ("dim", "area"), [(2, 2 * np.pi), (3, 4 * np.pi), (4, 2 * np.pi**2), (5, 8 * np.pi**2 / 3)]
)
def test_unit_columns_density_is_one_over_the_area(dim, area):
    prior = UnitColumns(dim, 3, "givens")
    w = prior.sample(jax.random.key(0), (2, 6))
    expected = np.full((2, 6), -3 * np.log(area))
    np.testing.assert_allclose(prior.log_prob(w), expected, rtol=1e-10)


@pytest.mark.parametrize("dim", [2, 3, 50])
def test_unit_columns_draws_are_uniform(dim):
    w = np.asarray(UnitColumns(dim, 2, "unit_vector").sample(jax.random.key(0), (3000,)))
    np.testing.assert_allclose(np.sum(w**2, -2), 1, rtol=1e-10)
    for column in range(2):
        law = stats.beta(0.5, (dim - 1) / 2)
        assert stats.kstest(w[:, 0, column] ** 2, law.cdf).pvalue > 1e-5
        assert abs(np.mean(w[:, -1, column] > 0) - 0.5) < 5 * np.sqrt(0.25 / 3000)


@pytest.mark.parametrize("chart", UNIT_COLUMN_CHARTS)
def test_unit_columns_carry_their_chart(chart):
    prior = UnitColumns(4, 2, chart)
    assert prior.support is UNIT_COLUMN_CHARTS[chart].codomain
    assert prior.support.check(prior.sample(jax.random.key(0)))


@pytest.mark.parametrize(
    "prior", [*(UnitColumns(4, 2, chart) for chart in UNIT_COLUMN_CHARTS), OrderedNormal(0.5, 3)]
)
def test_priors_cross_jit_trees_and_pickle(prior):
    value = prior.sample(jax.random.key(0))
    leaves, structure = jax.tree.flatten(prior)
    for copy in (pickle.loads(pickle.dumps(prior)), jax.tree.unflatten(structure, leaves)):
        assert copy.support is prior.support
        np.testing.assert_array_equal(copy.log_prob(value), prior.log_prob(value))
    found = jax.jit(lambda d, v: d.log_prob(v))(prior, value)
    np.testing.assert_allclose(found, prior.log_prob(value))
