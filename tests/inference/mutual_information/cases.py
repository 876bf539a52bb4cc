"""Gaussian components with known log densities, and sums over all permutations and signs for comparison."""

from collections.abc import Callable
from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from onebasin.inference.mutual_information.estimators import LogRatios, log_ratios


class Parts:
    """H components with D features each, component i at loc_i with scale_i, and draws from them."""

    def __init__(self, loc: np.ndarray, scale: np.ndarray, draws: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.loc, self.scale = loc, scale
        self.draws = loc + scale * rng.standard_normal((draws, *loc.shape))

    def log_density(self, sign: float | np.ndarray = 1.0) -> jax.Array:
        """Return entries (w, i, j) = log q_i(sign u_j), with one sign, or one per feature."""
        terms = norm.logpdf(
            sign * self.draws[:, None, :, :],
            self.loc[None, :, None, :],
            self.scale[None, :, None, :],
        )
        return jnp.asarray(terms.sum(-1))

    def ratios(self, *, flips: bool = False) -> LogRatios:
        return log_ratios(self.log_density(), self.log_density(-1.0) if flips else None)


def parts(
    num_parts: int, delta: float, *, features: int = 4, draws: int = 50, seed: int = 0
) -> Parts:
    """Return components with unequal scales; the mean log ratio of a transposition is about -2 delta."""
    rng = np.random.default_rng(1000 + seed)
    loc = rng.standard_normal((num_parts, features)) * np.sqrt(delta / features)
    return Parts(loc, rng.uniform(0.7, 1.4, (num_parts, features)), draws, seed)


def brute_force(case: Parts, *, flips: bool) -> np.ndarray:
    """Compute l(w) as the explicit sum of q(g w) / q(w) over the group."""
    densities = np.stack([case.log_density(1.0), case.log_density(-1.0)])
    size = densities.shape[-1]
    rows = np.arange(size)
    signs = product((0, 1), repeat=size) if flips else [(0,) * size]
    terms = [
        densities[list(sign), :, rows, list(columns)].sum(0)
        for sign in signs
        for columns in permutations(range(size))
    ]
    own = densities[0][:, rows, rows].sum(1)
    return logsumexp(terms, axis=0) - own


def all_permutations(size: int) -> np.ndarray:
    return np.array(list(permutations(range(size))))


def marginals_by_sum(matrix: np.ndarray) -> np.ndarray:
    """Compute P of one matrix by summing over all permutations."""
    each = all_permutations(len(matrix))
    logs = matrix[np.arange(len(matrix)), each].sum(1)
    weights = np.exp(logs - logsumexp(logs))
    found = np.zeros_like(matrix)
    for weight, columns in zip(weights, each, strict=True):
        found[np.arange(len(matrix)), columns] += weight
    return found


def assert_derivative(
    function: Callable[[jax.Array], jax.Array],
    matrix: np.ndarray,
    entries: list[tuple[int, ...]],
    *,
    step: float = 1e-5,
    rtol: float = 1e-6,
) -> None:
    """Compare entries of the gradient with central differences."""
    found = jax.grad(function)(jnp.asarray(matrix))
    for entry in entries:
        bump = np.zeros(matrix.shape)
        bump[entry] = step
        rise = function(jnp.asarray(matrix + bump)) - function(jnp.asarray(matrix - bump))
        np.testing.assert_allclose(2 * found[entry], rise / step, rtol=rtol)


def in_mcse(values: np.ndarray) -> float:
    """Return the mean in units of its standard error."""
    return values.mean() / (values.std(ddof=1) / np.sqrt(len(values)))
