"""Structures against dense linear algebra and SciPy's normal."""

import numpy as np
from scipy.stats import multivariate_normal

from onebasin.analysis.gaussian.estimation import Factors, Spectral

from ...each import each

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
