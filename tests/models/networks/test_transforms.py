"""Transforms and distributions of constrained weights, checked by formulas and finite differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy import stats

from onebasin.models.networks.parametrisation import (
    RADIUS_SD,
    UNIT_COLUMN_CHARTS,
    OrderedNormal,
    UnitColumns,
    UnitVectorTransform,
)

DIMS = [2, 3, 13, 800]
CHARTS = {name: chart() for name, chart in UNIT_COLUMN_CHARTS.items()}
chart_of_each = pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS.keys())


def compiled(chart):
    """The chart with its log density, and its inverse, each compiled whole: alone, every operation is compiled."""
    return _compiled(type(chart))


@functools.cache
def _compiled(kind):
    chart = kind()

    @jax.jit
    def both(x):
        w = chart(x)
        return w, chart.log_abs_det_jacobian(x, w)

    return both, jax.jit(chart._inverse)


def unit_columns(rng, *shape):
    z = rng.normal(size=shape)
    return jnp.asarray(z / np.linalg.norm(z, axis=-2, keepdims=True))


def log_volume(function, x):
    """Log of sqrt(det J'J), how much a map between any dimensions stretches volume."""
    jacobian = np.asarray(jax.jit(jax.jacfwd(function))(x))
    return 0.5 * np.linalg.slogdet(jacobian.T @ jacobian)[1]


def test_givens_is_the_papers_formula(rng):
    x = rng.normal(size=(4, 2))
    theta = np.pi * np.tanh(x / 2) * np.array([[1], [0.5], [0.5], [0.5]])
    expected = np.ones((5, 2))
    for column in range(2):
        for i in range(5):
            if i > 0:
                expected[i, column] *= np.sin(theta[i - 1, column])
            for j in range(i, 4):
                expected[i, column] *= np.cos(theta[j, column])
    found = compiled(CHARTS["givens"])[0](jnp.asarray(x))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("dim", DIMS)
@chart_of_each
def test_inverse_then_chart_gives_the_columns_back(rng, chart, dim):
    both, inverse = compiled(chart)
    w = unit_columns(rng, dim, 3)
    x = inverse(w)
    assert x.shape == chart.inverse_shape(w.shape)
    np.testing.assert_allclose(both(x)[0], w, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dim", DIMS)
def test_givens_then_inverse_gives_the_reals_back(rng, dim):
    # Of uniform columns: with all angles far from 0 the columns would underflow.
    chart, inverse = compiled(CHARTS["givens"])
    x = inverse(unit_columns(rng, dim, 3)).at[0].set(jnp.array([-5.0, 0.0, 5.0]))
    np.testing.assert_allclose(inverse(chart(x)[0]), x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dim", DIMS)
def test_unconstrained_givens_jacobian_is_the_area_element(rng, dim):
    chart = CHARTS["givens"]
    both, inverse = compiled(chart)
    x = inverse(unit_columns(rng, dim, 1)) + 0.01
    expected = log_volume(lambda z: chart(z[:, None])[:, 0], x[:, 0])
    np.testing.assert_allclose(both(x)[1], expected, rtol=1e-10)


def log_radius_density(chart, radius, dim):
    """Log density of the redundant radius under a chart, up to a constant."""
    if isinstance(chart, UnitVectorTransform):
        return (dim - 1) * np.log(radius) - radius**2 / 2  # chi with `dim` degrees of freedom
    return np.log(radius) - 0.5 * ((radius - 1) / RADIUS_SD) ** 2


@pytest.mark.parametrize("dim", DIMS[:3])
@pytest.mark.parametrize("name", ["givens_seamless", "unit_vector"])
def test_redundant_radius_is_independent_of_a_uniform_column(rng, name, dim):
    # (column, radius) is a bijection; its density, chart density over stretched volume, must be
    # constant in the column.
    chart = CHARTS[name]
    rows = slice(None) if name == "unit_vector" else slice(0, 2)

    def column_and_radius(z):
        return jnp.append(chart(z[:, None])[:, 0], jnp.linalg.norm(z[rows]))

    both, inverse = compiled(chart)
    differences = []
    for radius in (0.8, 1.3):
        x = inverse(unit_columns(rng, dim, 1))
        x = x.at[rows].multiply(radius)
        log_density = float(both(x)[1]) - log_volume(column_and_radius, x[:, 0])
        differences.append(log_density - log_radius_density(chart, radius, dim))
    np.testing.assert_allclose(differences[0], differences[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("name", ["givens", "givens_seamless"])
def test_density_is_finite_where_latitudes_round_to_the_pole(name, dtype):
    # pi/2 in single precision lies past the pole: the logarithm of its cosine is NaN.
    chart = CHARTS[name]
    values = np.array([-80.0, -20.0, 0.0, 20.0, 80.0])
    x = jnp.broadcast_to(values.astype(dtype)[:, None, None], (5, 4, 1)).at[:, 0].set(1.0)
    density, gradient = jax.jit(
        jax.vmap(jax.value_and_grad(lambda z: chart.log_abs_det_jacobian(z, chart(z))))
    )(x)
    assert density.dtype == dtype
    assert jnp.all(jnp.isfinite(density))
    assert jnp.all(jnp.isfinite(gradient))
    # Each latitude falls off as exp(-(1 + power) |x|) from its pole.
    rows = 2 if name == "givens_seamless" else 1
    slopes = -np.sign(values)[:, None] * (1 + np.arange(1, 4 - rows + 1))
    np.testing.assert_allclose(gradient[:, rows:, 0], slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["givens", "givens_seamless"])
def test_derivatives_are_those_of_finite_differences(rng, name):
    # The charts state theirs; at 0 too, where |x| has none, and near the poles. Backwards alone: JAX transposes the
    # rules, which are stated forwards.
    chart = CHARTS[name]
    weight = jnp.asarray(rng.normal(size=chart.forward_shape((4, 2))))

    @jax.jit
    def weighed(x):
        return jnp.sum(weight * chart(x)) + chart.log_abs_det_jacobian(x, chart(x))

    for scale in (0.0, 1.0, 5.0):
        x = scale * rng.normal(size=(4, 2)) + np.eye(4, 2)
        if name == "givens":
            x[1:] *= scale
        check_grads(weighed, (jnp.asarray(x),), order=2, modes=("rev",), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "dim"), [("givens_seamless", 2), ("unit_vector", 2), ("unit_vector", 5)]
)
def test_density_of_the_redundant_radius_is_normalised(name, dim):
    # Over all radii it integrates to 1, per area of the sphere. Columns of two rows have no latitudes.
    radius = np.linspace(1e-6, 9.0, 40_001)
    x = jnp.asarray(radius[:, None, None] * np.eye(dim)[:, :1])
    of_radius = np.exp(compiled(CHARTS[name])[0](x)[1]) * radius ** (dim - 1)
    assert np.trapezoid(of_radius, radius) == pytest.approx(1, rel=1e-7)


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
