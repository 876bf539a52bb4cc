"""The averaged path gradient against the derivative of I by quadrature, and its noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import norm

from inference.mutual_information import exact, information, log_ratios, path_gradient

from .cases import parts

NODES, WEIGHTS = hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def test_mean_is_the_derivative_of_the_quadrature() -> None:
    """Two parts of one feature: I by Gauss-Hermite quadrature and finite differences, and so the mean."""
    loc, scale, step = np.array([0.4, -0.5]), np.array([0.9, 1.2]), 1e-4
    eps = np.stack(np.meshgrid(NODES, NODES, indexing="ij"), -1).reshape(-1, 2)
    weights = np.outer(WEIGHTS, WEIGHTS).ravel()

    def information_at(loc: np.ndarray, scale: np.ndarray) -> float:
        u = loc + scale * eps
        log_q = norm.logpdf(u[:, None, :], loc[None, :, None], scale[None, :, None])
        own, swapped = log_q[:, 0, 0] + log_q[:, 1, 1], log_q[:, 0, 1] + log_q[:, 1, 0]
        return np.log(2) - weights @ np.logaddexp(0.0, swapped - own)

    u = jnp.asarray(loc + scale * eps)
    density = norm.logpdf(u[:, None, :], loc[None, :, None], scale[None, :, None])
    marginals = jax.jit(exact())(jax.random.key(0), log_ratios(jnp.asarray(density))).marginals
    arguments = jnp.asarray(loc)[:, None], jnp.asarray(scale)[:, None]
    by_loc, by_scale = path_gradient(u[:, :, None], *arguments, marginals)
    for part in range(2):
        bump = step * np.eye(2)[part]
        for found, slope in [
            (by_loc, information_at(loc + bump, scale) - information_at(loc - bump, scale)),
            (by_scale, information_at(loc, scale + bump) - information_at(loc, scale - bump)),
        ]:
            mean = weights @ np.asarray(found[:, part, 0])
            # 80 nodes and a step of 1e-4 leave 1e-7 of derivatives of about 0.2.
            np.testing.assert_allclose(mean, slope / (2 * step), rtol=1e-5, atol=1e-7)


def test_it_agrees_with_differentiating_the_draws_and_is_less_noisy() -> None:
    case = parts(4, 1.0, draws=2000)
    loc, scale = jnp.asarray(case.loc), jnp.asarray(case.scale)
    eps = (jnp.asarray(case.draws) - loc[None]) / scale[None]

    def log_density(u: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
        standard = (u[None, :, :] - loc[:, None, :]) / scale[:, None, :]
        return jnp.sum(-0.5 * standard**2 - jnp.log(scale)[:, None, :], -1)

    @jax.jit
    @jax.vmap
    def plain(eps: jax.Array) -> jax.Array:
        def value(loc: jax.Array) -> jax.Array:
            ratios = log_ratios(log_density(loc + scale * eps, loc, scale)[None])
            found = exact()(jax.random.key(0), ratios)
            return information(ratios, found, control_variate=False)[0]

        return jax.grad(value)(loc)

    noisy = np.asarray(plain(eps))
    marginals = jax.jit(exact())(jax.random.key(0), case.ratios()).marginals
    quiet = np.asarray(path_gradient(jnp.asarray(case.draws), loc, scale, marginals)[0])
    mcse = (noisy - quiet).std(0, ddof=1) / np.sqrt(2000)
    assert (np.abs((noisy - quiet).mean(0)) < 5 * mcse).all()
    assert np.sqrt(quiet.var(0).sum()) < 0.5 * np.sqrt(noisy.var(0).sum())


def test_certain_relabellings_have_no_gradient() -> None:
    case = parts(3, 1.0, draws=5)
    marginals = jnp.broadcast_to(jnp.eye(3)[None, [1, 2, 0]], (5, 3, 3))
    found = path_gradient(
        jnp.asarray(case.draws), jnp.asarray(case.loc), jnp.asarray(case.scale), marginals
    )
    np.testing.assert_allclose(found, 0.0, atol=1e-12)
