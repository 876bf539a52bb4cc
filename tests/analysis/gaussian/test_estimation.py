"""Structures and estimators against dense formulas, SciPy, scikit-learn, and planted moments."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf as sklearn_ledoit_wolf
from sklearn.decomposition import FactorAnalysis

from onebasin.analysis.gaussian import estimation
from onebasin.analysis.gaussian.estimation import LEAST_UNIQUE, Factors, Spectral

from ...each import each
from .conftest import random_correlation, with_moments


def standardised(rows):
    z = rows - rows.mean(axis=0)
    return z / np.sqrt(np.square(z).mean(axis=0))


SHAPES = [(60, 12), (12, 60), (20, 20), (21, 20), (2, 5)]


def rows_of(rng, shape):
    """Draw standardised rows (num, size) of correlated parameters."""
    num, size = shape
    root = np.linalg.cholesky(random_correlation(rng, size))
    return standardised(rng.standard_normal((num, size)) @ root.T)


@each("shape", SHAPES)
def test_spectrum_is_that_of_the_correlation_matrix(rng, shape):
    z, (num, size) = rows_of(rng, shape), shape
    found = estimation.spectrum(z)
    values, vectors = found.values, found.vectors
    assert values.size == min(num - 1, size)
    expected = np.linalg.eigvalsh(z.T @ z / num)[::-1]
    np.testing.assert_allclose(values, expected[: values.size], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(values.size), atol=1e-12)
    np.testing.assert_allclose((vectors * values) @ vectors.T, z.T @ z / num, atol=1e-12)


@each("shape", SHAPES)
def test_ledoit_wolf_is_scikit_learns(rng, shape):
    z = rows_of(rng, shape)
    expected = sklearn_ledoit_wolf(z, assume_centered=True)[1]
    found = estimation.ledoit_wolf(z, estimation.spectrum(z))
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_one_parameter_keeps_its_variance_whatever_is_shrunk(rng):
    z = standardised(rng.standard_normal((10, 1)))
    found = estimation.spectrum(z)
    shrinkage = estimation.ledoit_wolf(z, found)
    assert 0 <= shrinkage <= 1
    np.testing.assert_allclose(estimation.shrunk(found, shrinkage).matrix, [[1.0]], rtol=1e-12)


@each("shape", SHAPES)
@each("shrinkage", [0.02, 0.6, 1.0])
def test_shrunk_is_the_convex_combination(rng, shape, shrinkage):
    z = rows_of(rng, shape)
    found = estimation.shrunk(estimation.spectrum(z), shrinkage)
    correlation = z.T @ z / len(z)
    expected = (1 - shrinkage) * correlation + shrinkage * np.eye(z.shape[1])
    np.testing.assert_allclose(found.matrix, expected, atol=1e-12)


def test_shrunk_refuses_what_is_singular(rng):
    few = standardised(rng.standard_normal((5, 8)))
    with pytest.raises(ValueError, match=r"`shrinkage` is 0, .*singular.*larger one, up to 1"):
        estimation.shrunk(estimation.spectrum(few), 0.0)
    twice = standardised(np.repeat(rng.standard_normal((50, 3)), 2, axis=1))
    with pytest.raises(ValueError, match="singular"):
        estimation.shrunk(estimation.spectrum(twice), 0.0)
    with pytest.raises(ValueError, match="singular"):
        estimation.stiffest(estimation.spectrum(twice), 0.0, 2)


@each("shrinkage", [0.0, 0.3])
def test_stiffest_keeps_the_smallest_eigenvalues_and_the_trace(rng, shrinkage):
    z = standardised(rng.standard_normal((40, 9)) @ rng.standard_normal((9, 9)))
    found = estimation.stiffest(estimation.spectrum(z), shrinkage, 3)
    shrunk = (1 - shrinkage) * (z.T @ z / 40) + shrinkage * np.eye(9)
    values, vectors = np.linalg.eigh(shrunk)
    values[3:] = values[3:].mean()
    np.testing.assert_allclose(found.matrix, (vectors * values) @ vectors.T, atol=1e-12)
    assert np.trace(found.matrix) == pytest.approx(9.0, rel=1e-12)


def test_factors_recover_loadings_beside_unequal_unique_variances(rng):
    truth = random_correlation(rng, 20, rank=3)
    found = estimation.factors(with_moments(rng, 500, truth), 3)
    # The iteration stops where it gains less than 1e-4 nats a draw; measured 7e-4 off over five seeds.
    np.testing.assert_allclose(found.matrix, truth, atol=2e-3)
    components, vectors = np.linalg.eigh(truth)
    top = (vectors[:, -3:] * components[-3:]) @ vectors[:, -3:].T
    principal = top - np.diag(np.diag(top)) + np.eye(20)
    assert np.abs(principal - truth).max() > 0.05  # what principal components would have found


@each("shape", [(200, 15), (30, 60)])
def test_factors_are_as_likely_as_scikit_learns(rng, shape):
    root = np.linalg.cholesky(random_correlation(rng, shape[1]))
    z = standardised(rng.standard_normal(shape) @ root.T)
    found = estimation.factors(z, 3)
    other = FactorAnalysis(3, svd_method="lapack", tol=1e-4 * shape[0]).fit(z)
    # Both stop where they gain less than 1e-4 nats a draw; measured 7e-4 apart over five seeds.
    assert found.log_density(z).mean() == pytest.approx(other.score(z), abs=2e-3)


def test_factors_leave_a_density_where_parameters_are_copies(rng):
    rows = rng.standard_normal((80, 5))
    found = estimation.factors(standardised(np.column_stack([rows, rows[:, 0]])), 2)
    assert found.unique.min() == pytest.approx(LEAST_UNIQUE)
    np.testing.assert_allclose(found.variance, 1.0, rtol=1e-12)
    assert np.linalg.eigvalsh(found.matrix).min() > 0


def test_many_parameters_need_no_square_matrix(rng):
    z = standardised(rng.standard_normal((40, 4000)))
    square = 8 * 4000**2
    tracemalloc.start()
    found = estimation.shrunk(estimation.spectrum(z), 0.5)
    found.log_density(found.draw(rng, 10))
    estimation.factors(z, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < square / 10


SIZE = 9


def spectral(rng, rank: int) -> Spectral:
    vectors, _ = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))
    return Spectral(vectors[:, :rank], np.geomspace(1e-3, 4.0, rank), 0.7)


def factors(rng, rank: int) -> Factors:
    return Factors(rng.standard_normal((SIZE, rank)), rng.uniform(0.2, 2.0, SIZE))


CASES = [(spectral, 0), (spectral, 3), (spectral, SIZE), (factors, 1), (factors, 4)]


@each(("make", "rank"), CASES)
def test_log_density_is_scipys(make, rank, rng):
    structure = make(rng, rank)
    u = 2 * rng.standard_normal((50, SIZE))
    expected = multivariate_normal(np.zeros(SIZE), structure.matrix).logpdf(u)
    np.testing.assert_allclose(structure.log_density(u), expected, rtol=1e-10)


def test_matrices_are_what_the_docstring_says(rng):
    made = spectral(rng, 3)
    basis = made.vectors
    along = basis @ basis.T
    expected = basis @ np.diag(made.values) @ basis.T + 0.7 * (np.eye(SIZE) - along)
    np.testing.assert_allclose(made.matrix, expected, atol=1e-14)
    inverse = np.eye(SIZE) / 0.7 + basis @ np.diag(1 / made.values - 1 / 0.7) @ basis.T
    np.testing.assert_allclose(made.matrix @ inverse, np.eye(SIZE), atol=1e-11)
    other = factors(rng, 2)
    expected = other.loadings @ other.loadings.T + np.diag(other.unique)
    np.testing.assert_allclose(other.matrix, expected, atol=1e-14)


@each(("make", "rank"), CASES)
def test_variance_is_the_diagonal(make, rank, rng):
    structure = make(rng, rank)
    np.testing.assert_allclose(structure.variance, np.diag(structure.matrix), rtol=1e-12)


@each(("make", "rank"), CASES)
def test_draws_have_the_covariance(make, rank, rng):
    """Whitened: also in the narrowest directions, which the covariance entry by entry would not show."""
    structure, num = make(rng, rank), 20_000
    inverse = np.linalg.inv(np.linalg.cholesky(structure.matrix))
    white = structure.draw(rng, num) @ inverse.T
    error = np.sqrt((1 + np.eye(SIZE)) / num)
    assert np.abs((white.T @ white / num - np.eye(SIZE)) / error).max() < 5
    assert np.abs(white.mean(axis=0)).max() < 5 / np.sqrt(num)


def test_log_density_survives_directions_of_little_variance(rng):
    vectors, _ = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))
    structure = Spectral(vectors[:, :4], np.full(4, 2.0), 1e-9)
    u = structure.draw(rng, 20)
    in_basis = u @ vectors
    variances = np.asarray([2.0] * 4 + [1e-9] * 5)
    expected = -0.5 * (in_basis**2 / variances + np.log(2 * np.pi * variances)).sum(axis=1)
    # Rounding of the projection, 1e-16 against a standard deviation of 3e-5: 1e-11 a direction.
    np.testing.assert_allclose(structure.log_density(u), expected, rtol=1e-9)
