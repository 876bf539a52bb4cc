"""Search for the best of several optima of a log density, where a chain starts.

The potential is minus the log density in the unconstrained space, with the Jacobian. The optimiser is SciPy's L-BFGS-B
without bounds (Zhu et al. 1997). Every starting point has a separate run, so that a chain's start depends only on its
own key. A point where the potential is not finite counts as a wall, from which the line search turns back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from onebasin.base.errors import InferenceError

from ..contracts.density import Vector

ITERATIONS = 1000  # Maximum number of iterations of a run.
FLAT = {"float64": 1e-5, "float32": 1e-2}  # Largest gradient at an optimum with a potential of 1.


@dataclass(frozen=True)
class OptimiserEnd:
    """The point where a run of the optimiser ended."""

    potential: float  # Infinite if the run failed.
    vector: np.ndarray  # (param,).
    gradient: np.ndarray  # Gradient of the potential (param,).
    evaluations: int = 0  # Number of gradients in the run.

    @property
    def is_flat(self) -> bool:
        """Return whether the gradient is zero up to rounding."""
        slack = FLAT[self.vector.dtype.name] * max(1.0, abs(self.potential))
        return bool(np.max(np.abs(self.gradient), initial=0.0) <= slack)


class BestOptimum:
    """A compiled search for the best optimum from several starting points.

    The log density is a function of a vector and possibly more arguments, such as data. Options are those of L-BFGS-B.
    """

    def __init__(self, log_density: Callable[..., jax.Array], **options: float) -> None:
        self._objective = jax.jit(jax.value_and_grad(lambda v, *given: -log_density(v, *given)))
        self._options = {"maxiter": ITERATIONS, **options}

    def __call__(self, starts: Float[Array, "start param"], *given: Any) -> Vector:
        """Return the optimum with the highest log density, where a chain starts."""
        try:
            best = self.best(starts, given=given)
        except InferenceError as error:
            raise InferenceError(
                f"{error} You can also raise `init_starts`, or use init='random'."
            ) from error
        return jnp.asarray(best.vector)

    def climb(self, vector: Vector) -> tuple[jax.Array, jax.Array]:
        """Return the log density and its gradient at a vector."""
        potential, slope = self._objective(vector)
        return -potential, -slope

    def best(
        self,
        starts: Float[Array, "start param"],
        done: Callable[[int], None] = lambda _: None,
        given: Sequence[Any] = (),
    ) -> OptimiserEnd:
        """Return the highest optimum; call `done` after each run with the number of runs so far."""
        found = self.every(starts, done, given)
        best = min(found, key=lambda end: end.potential)
        if not np.isfinite(best.potential):
            raise InferenceError(
                f"No optimum with a finite log density was found (starting points: {len(found)}). Check the data and "
                "the prior."
            )
        return best

    def every(
        self,
        starts: Float[Array, "start param"],
        done: Callable[[int], None] = lambda _: None,
        given: Sequence[Any] = (),
    ) -> list[OptimiserEnd]:
        """Return the end of the run from each start; `done` is used as in `best`."""
        found = []
        for number, start in enumerate(np.asarray(starts), 1):
            found.append(self._run(start, given))
            done(number)
        return found

    def _run(self, start: np.ndarray, given: Sequence[Any]) -> OptimiserEnd:
        """Return the end of the run from a point."""
        first = float(self._objective(jnp.asarray(start), *given)[0])
        # The wall is higher than any point that the run accepts, but low enough for the line search.
        wall = first + 10 * (1 + abs(first)) if np.isfinite(first) else np.inf

        def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._objective(jnp.asarray(vector, start.dtype), *given)
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return wall, np.zeros(vector.shape)
            return float(value), np.asarray(gradient, np.float64)

        end = minimize(objective, start, jac=True, method="L-BFGS-B", options=self._options)
        potential = float(end.fun) if end.fun < wall else np.inf
        return OptimiserEnd(potential, end.x.astype(start.dtype), np.asarray(end.jac), end.nfev)
