"""The best of several optima of a log density, as the start of a chain.

Potential: minus the log density in the unconstrained space, with the Jacobian. The optimiser is SciPy's L-BFGS-B
without bounds (Zhu et al. 1997); every starting point has a run of its own, so that a chain's start depends on its
own key alone. A point where the potential is not finite counts as a wall: the line search turns back before it.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from ..errors import InferenceError

ITERATIONS = 1000
"""Most iterations of a run; one that ends there is as good a start as any other."""

Vector = Float[Array, " param"]


class BestOptimum:
    """Finds the best optimum from several starting points; compiled once.

    Parameters
    ----------
    log_density : callable
        Of one vector (param,).
    """

    def __init__(self, log_density: Callable[[Vector], jax.Array]) -> None:
        self._objective = jax.jit(jax.value_and_grad(lambda v: -log_density(v)))

    def __call__(self, starts: Float[Array, "start param"]) -> Vector:
        """The point of the highest log density.

        Raises
        ------
        InferenceError
            If none of the runs ends at a finite log density.
        """
        vectors = np.asarray(starts)
        potential, vector = min(map(self._run, vectors), key=lambda end: end[0])
        if not np.isfinite(potential):
            raise InferenceError(
                f"No optimum with a finite log density was found from {len(vectors)} starting points (init='optimum'); "
                "raise `init_starts`, or use init='random'."
            )
        return jnp.asarray(vector, vectors.dtype)

    def _run(self, start: np.ndarray) -> tuple[float, np.ndarray]:
        """The lowest potential of a run, infinite where it failed, and its place."""
        wall = self._wall(start)

        def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._objective(jnp.asarray(vector, start.dtype))
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return wall, np.zeros(vector.shape)
            return float(value), np.asarray(gradient, np.float64)

        end = minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}
        )
        return (float(end.fun) if end.fun < wall else np.inf), end.x

    def _wall(self, start: np.ndarray) -> float:
        """A value above all that a run from here accepts, yet near enough for the line search's interpolation."""
        value = float(self._objective(jnp.asarray(start))[0])
        return value + 10 * (1 + abs(value)) if np.isfinite(value) else np.inf
