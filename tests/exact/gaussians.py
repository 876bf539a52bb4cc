"""The best Gaussians in the unconstrained space, by quadrature of the ELBO. ADVI finds them by noisy gradients.

With z = m + L e the ELBO of N(m, L L') is E[log p(z)] + log |L| + const, e standard normal; the trapezoidal rule in
every e computes the expectation. L-BFGS starts from a given Gaussian and finds the optimum in its basin.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

REACH = 5.5
STEPS = {1: (0.1, 0.05), 2: (0.25, 0.1), 3: (0.5, 0.25), 4: (0.8, 0.5)}
"""By the number of parameters: steps of the rule in optimisation, and for the reported value."""


def _rule(size: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    count = round(REACH / step)
    one = step * np.arange(-count, count + 1)
    nodes = np.stack([a.ravel() for a in np.meshgrid(*[one] * size, indexing="ij")], 1)
    mass = np.exp(-0.5 * (nodes**2).sum(1))
    kept = mass > 1e-9
    return nodes[kept], mass[kept] / mass[kept].sum()


def best_elbo(density: Any, loc: np.ndarray, scale: np.ndarray) -> float:
    """Return the ELBO in nats of the best Gaussian, from a start with diagonal (param,) or triangular scale (param,
    param). The shape of this scale selects mean field or full rank.
    """
    size, full = len(loc), scale.ndim == 2
    rows, columns = np.tril_indices(size, -1)
    diagonal = np.diag(scale) if full else scale
    start = np.concatenate([loc, np.log(diagonal), scale[rows, columns] if full else []])

    def elbo(where: jax.Array, nodes: jax.Array, mass: jax.Array) -> jax.Array:
        m, log_scale, below = where[:size], where[size : 2 * size], where[2 * size :]
        lower = jnp.diag(jnp.exp(log_scale))
        if full:
            lower = lower.at[rows, columns].set(below)
        values = jax.vmap(density.log_density)(m[None, :] + nodes @ lower.T)
        entropy = jnp.sum(log_scale) + 0.5 * size * (1 + jnp.log(2 * jnp.pi))
        return jnp.sum(mass * values) + entropy

    both = jax.jit(jax.value_and_grad(elbo))
    coarse, fine = (tuple(map(jnp.asarray, _rule(size, step))) for step in STEPS[size])

    def loss(where: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = both(jnp.asarray(where), *coarse)
        return -float(value), -np.asarray(gradient, np.float64)

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return float(both(jnp.asarray(found.x), *fine)[0])
