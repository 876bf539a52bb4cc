"""The best of several optima of a log density, as the start of a chain.

Potential: minus the log density in the unconstrained space, with the Jacobian. The optimiser is SciPy's L-BFGS-B
without bounds (Zhu et al. 1997); every starting point has a run of its own, so that a chain's start depends on its
own key alone. A point where the potential is not finite counts as a wall: the line search turns back before it.
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

ITERATIONS = 1000  # Most iterations of a run.
FLAT = {"float64": 1e-5, "float32": 1e-2}  # Largest gradient at an optimum, for a potential of 1.


@dataclass(frozen=True)
class OptimiserEnd:
    """The point where a run of the optimiser ended."""

    potential: float  # infinite if it failed
    vector: np.ndarray  # (param,)
    gradient: np.ndarray  # (param,), of the potential
    evaluations: int = 0  # gradients that the run took

    @property
    def is_flat(self) -> bool:
        """Check whether the gradient is zero up to rounding."""
        slack = FLAT[self.vector.dtype.name] * max(1.0, abs(self.potential))
        return bool(np.max(np.abs(self.gradient), initial=0.0) <= slack)


class BestOptimum:
    """A compiled search for the best optimum from several starting points.

    The log density is a function of a vector and of further arguments, such as data; options are those of SciPy's
    L-BFGS-B.
    """

    def __init__(self, log_density: Callable[..., jax.Array], **options: float) -> None:
        self._objective = jax.jit(jax.value_and_grad(lambda v, *given: -log_density(v, *given)))
        self._options = {"maxiter": ITERATIONS, **options}

    def __call__(self, starts: Float[Array, "start param"], *given: Any) -> Vector:
        """Return the point of the highest log density, as the start of a chain."""
        try:
            best = self.best(starts, given=given)
        except InferenceError as error:
            raise InferenceError(
                f"{str(error).removesuffix('.')} (init='optimum'). Raise `init_starts`, or use init='random'."
            ) from error
        return jnp.asarray(best.vector)

    def climb(self, vector: Vector) -> tuple[jax.Array, jax.Array]:
        """The log density and its gradient at a vector."""
        potential, slope = self._objective(vector)
        return -potential, -slope

    def best(
        self,
        starts: Float[Array, "start param"],
        done: Callable[[int], None] = lambda _: None,
        given: Sequence[Any] = (),
    ) -> OptimiserEnd:
        """Return the highest optimum; `done` is called after each start with the number so far."""
        found = self.every(starts, done, given)
        best = min(found, key=lambda end: end.potential)
        if not np.isfinite(best.potential):
            raise InferenceError(
                f"None of {len(found)} starting points led to an optimum with a finite log density."
            )
        return best

    def every(
        self,
        starts: Float[Array, "start param"],
        done: Callable[[int], None] = lambda _: None,
        given: Sequence[Any] = (),
    ) -> list[OptimiserEnd]:
        """Return the end of the run from each start; `done` as in `best`."""
        found = []
        for number, start in enumerate(np.asarray(starts), 1):
            found.append(self._run(start, given))
            done(number)
        return found

    def _run(self, start: np.ndarray, given: Sequence[Any]) -> OptimiserEnd:
        """Return the end of the run from a point."""
        first = float(self._objective(jnp.asarray(start), *given)[0])
        # Higher than any point that the run accepts, yet low enough for the line search.
        wall = first + 10 * (1 + abs(first)) if np.isfinite(first) else np.inf

        def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._objective(jnp.asarray(vector, start.dtype), *given)
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return wall, np.zeros(vector.shape)
            return float(value), np.asarray(gradient, np.float64)

        end = minimize(objective, start, jac=True, method="L-BFGS-B", options=self._options)
        potential = float(end.fun) if end.fun < wall else np.inf
        return OptimiserEnd(potential, end.x.astype(start.dtype), np.asarray(end.jac), end.nfev)
