"""Gaussians fitted to two modes, against densities integrated directly, a fit in the plane, and counting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from onebasin.studies.permutation_invariant_vi.two_modes import (
    curvature,
    divergence,
    mode,
    saddle,
    slope,
    switching,
    vanishing,
)

DIRECTION = np.array([np.cos(np.pi / 6), np.sin(np.pi / 6)])
CASES = [(0.5, 0.25, 0.3, 0.4), (1.0, 1.0, -0.7, 1.3), (5.0, 2.0, 3.0, 1.0), (4.0, 1.0, 0.0, 3.5)]
WIDE = (6.0, 1.0, 0.0, 5.0)
"""Up to this ratio the quadrature converges."""


def log_target(x, alpha, sigma):
    parts = [norm.logpdf(x, place, sigma) for place in (-alpha, alpha)]
    return np.logaddexp(*parts) - np.log(2)


def direct(alpha, sigma, mean, sd):
    """KL(q || p) of the densities themselves."""

    def integrand(x):
        log_q = norm.logpdf(x, mean, sd)
        return np.exp(log_q) * (log_q - log_target(x, alpha, sigma))

    ends = mean - 12 * sd, mean + 12 * sd
    return quad(integrand, *ends, points=[mean], limit=400, epsabs=1e-13)[0]


def hermite(nodes):
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return points, weights / weights.sum()


def in_plane(mean, factor, alpha, sigma, nodes=60):
    """KL(q || p) in the plane by Gauss and Hermite's rule in both coordinates, in JAX."""
    points, weights = hermite(nodes)
    noise = jnp.asarray(np.stack(np.meshgrid(points, points), axis=-1).reshape(-1, 2))
    both = jnp.asarray(np.outer(weights, weights).ravel())
    x = mean[None] + noise @ factor.T
    u = jnp.asarray(DIRECTION)
    near, far = (((x - s * alpha * u[None]) ** 2).sum(1) / (2 * sigma**2) for s in (1, -1))
    log_p = jnp.logaddexp(-near, -far) - jnp.log(4 * jnp.pi * sigma**2)
    log_q = -0.5 * (noise**2).sum(1) - jnp.log(2 * jnp.pi * jnp.abs(factor[0, 0] * factor[1, 1]))
    return both @ (log_q - log_p)


@pytest.mark.parametrize(("alpha", "sigma", "mean", "sd"), [*CASES, WIDE])
def test_divergence_is_that_of_the_densities(alpha, sigma, mean, sd):
    found = divergence(alpha / sigma, mean / sigma, sd / sigma)
    np.testing.assert_allclose(found, direct(alpha, sigma, mean, sd), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("ratio", "others"), [(2.4, 0), (2.42, 2), (5.0, 2)])
def test_stationary_points_are_counted(ratio, others):
    # Besides the midpoint, at means above 0: where the slope along the mean changes its sign, among the sds that are
    # stationary at a mean. There is one such sd, but for a range of means at large ratios where all slopes agree.
    sds = np.geomspace(0.3, 2 * ratio + 2, 80)
    signs = []
    for mean in np.linspace(1e-3, 1.2 * ratio, 100):
        slopes = np.array([slope(ratio, mean, sd)[1] for sd in sds])
        places = np.flatnonzero(np.diff(np.sign(slopes)))
        assert len(places) == 1 or mean > vanishing()[0]  # so that `saddle` finds the right one
        found = [
            brentq(lambda sd, at=mean: slope(ratio, at, sd)[1], *sds[k : k + 2]) for k in places
        ]
        (sign,) = {np.sign(slope(ratio, mean, sd)[0]) for sd in found}
        signs.append(sign)
    assert int((np.diff(signs) != 0).sum()) == others
    assert (mode(ratio) is not None) == (others == 2) == (saddle(ratio) is not None)


def test_vanishing_is_where_two_stationary_points_meet():
    mean, sd, ratio = vanishing()
    near, between = mode(ratio + 1e-8), saddle(ratio + 1e-8)
    np.testing.assert_allclose([near.mean, between.mean], mean, atol=1e-3)
    np.testing.assert_allclose(slope(ratio, mean, sd), 0, atol=1e-10)
    np.testing.assert_allclose(np.linalg.det(curvature(ratio, mean, sd)), 0, atol=1e-10)


def test_switching_is_where_the_best_gaussian_moves():
    x = np.linspace(-20, 20, 4001)

    def value(q, ratio):
        log_q = norm.logpdf(x, q[0], np.exp(q[1]))
        return np.exp(log_q) @ (log_q - log_target(x, ratio, 1.0)) * (x[1] - x[0])

    gains = []
    for ratio in (2.799, 2.801):
        ends = [minimize(value, start, (ratio,), tol=1e-8) for start in ((0, 1), (ratio, 0))]
        assert abs(ends[0].x[0]) < 1e-3 < 2.7 < ends[1].x[0]
        gains.append(ends[0].fun - ends[1].fun)
    assert gains[0] < 0 < gains[1]
    np.testing.assert_allclose(switching(), 2.80, atol=1e-3)


def test_fit_in_the_plane_is_the_fit_along_the_line():
    # Five free parameters, from a start that lies off the line and is turned.
    alpha, sigma = 1.5, 0.5

    def objective(q):
        factor = jnp.array([[q[2], 0.0], [q[3], q[4]]])
        return in_plane(q[:2], factor, alpha, sigma)

    start = np.array([*(0.9 * alpha * DIRECTION + [0.05, -0.1]), 0.6, 0.1, 0.4])
    fit = minimize(jax.jit(objective), start, jac=jax.jit(jax.grad(objective)), tol=1e-10).x
    factor = np.array([[fit[2], 0], [fit[3], fit[4]]])
    along = mode(alpha / sigma)
    np.testing.assert_allclose(fit[:2], sigma * along.mean * DIRECTION, atol=1e-5)
    across = np.eye(2) - np.outer(DIRECTION, DIRECTION)
    wanted = (sigma * along.sd) ** 2 * np.outer(DIRECTION, DIRECTION) + sigma**2 * across
    np.testing.assert_allclose(factor @ factor.T, wanted, atol=1e-5)
