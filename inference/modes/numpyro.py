"""Optima and Laplace's approximation of a NumPyro model.

Vectors are in the unconstrained space. L-BFGS ends about 1e-6 from an optimum. Laplace's approximation needs the
curvature anyway, and adds Newton steps.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
import xarray as xr
from numpyro.infer.util import log_density

from onebasin.base.errors import InferenceError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, key_for, keys_for

from ..contracts.density import Vector
from ..contracts.method import Found, Job, one_chain
from ..density.network import numpyro_density_of
from ..density.numpyro import NumpyroDensity
from ..mcmc.optimum import BestOptimum, OptimiserEnd
from ..variational.engine import draw_fit
from ..variational.gaussians import FullRank, log_diagonal
from .edge import at_optimum, no_peak, running_off
from .methods import Laplace, Optimize

NEWTON_STEPS = 5
EXACT = {"maxfun": 10**9, "ftol": 0.0, "gtol": 1e-9, "maxls": 50}
"""L-BFGS-B continues until rounding stops it."""


def optimize(job: Job[Optimize]) -> Found:
    """Find the highest point of the log density, with or without the log Jacobian."""
    with precision(job.method.dtype):
        density = numpyro_density_of(job.target)
        with_jacobian = job.method.jacobian

        def height(vector: Vector) -> jax.Array:
            if with_jacobian:
                return density.log_density(vector)
            return log_density(density.model, (), {}, density.constrain(vector))[0]

        search, best = _search(density, height, job)
        values = density.quantities(density.unravel(jnp.asarray(best.vector)))
        lp = np.full(1, -best.potential)
        variable = _edge(density, search, best)
    draws = {name: np.asarray(value)[None] for name, value in values.items()}
    return at_optimum(draws, lp, best.is_flat, job.target.name, variable)


def _edge(density: NumpyroDensity, search: BestOptimum, best: OptimiserEnd) -> str | None:
    """Return the variable that runs to its boundary at the end of a search; None for networks, which may have kinks."""
    if density.target.is_network:
        return None

    def at(vector: np.ndarray) -> tuple[float, np.ndarray]:
        level, slope = search.climb(jnp.asarray(vector, best.vector.dtype))
        return float(level), np.asarray(slope, np.float64)

    def values(vector: np.ndarray) -> dict[str, np.ndarray]:
        found = density.constrain(jnp.asarray(vector))
        return {name: np.asarray(value) for name, value in found.items()}

    return running_off(at, values, np.asarray(best.vector, np.float64))


def laplace(job: Job[Laplace]) -> Found:
    """Fit a Gaussian with the Hessian at the mode."""
    s = job.method
    with precision(s.dtype):
        density = numpyro_density_of(job.target)
        search, best = _search(density, density.log_density, job)
        curvature = jax.jit(jax.hessian(lambda v: -density.log_density(v)))
        loc = jnp.asarray(best.vector)
        (height, slope), hessian = search.climb(loc), curvature(loc)
        for _ in range(NEWTON_STEPS):
            step = loc + jnp.linalg.solve(hessian, slope)
            if not (climbed := search.climb(step))[0] > height:
                break
            loc, (height, slope), hessian = step, climbed, curvature(step)
        precision_factor = jnp.linalg.cholesky(hessian)
        variable = _edge(density, search, best)
        if variable or not bool(jnp.isfinite(precision_factor).all()):
            raise InferenceError(f"{no_peak(job.target.name, variable, -best.potential)}.")
        covariance = jax.scipy.linalg.cho_solve((precision_factor, True), jnp.eye(len(loc)))
        lower = jnp.linalg.cholesky((covariance + covariance.T) / 2)
        family = FullRank(density.size)
        params = {"loc": loc, "lower": log_diagonal(lower)}
        key = key_for(Purpose.LAPLACE_DRAWS, job.seed)
        draws, lp, log_q = jax.jit(lambda p: draw_fit(density, family, p, key, s.draws))(params)
        described: dict[str, Any] = {
            n: (d, np.asarray(v)) for n, (d, v) in family.describe(params).items()
        }
    stats = {"lp": lp, "log_q": log_q}
    return one_chain(draws, stats, xr.Dataset(described), converged=best.is_flat)


def _search(density: NumpyroDensity, height: Any, job: Job) -> tuple[BestOptimum, OptimiserEnd]:
    """Return the compiled search, and the highest optimum that it finds."""
    s = job.method
    keys = keys_for(Purpose.OPTIMUM_START, job.seed, s.starts)
    bar = job.bars.add("optimum", s.starts)
    search = BestOptimum(height, maxiter=s.iterations, **EXACT)
    starts = density.random_starts(keys, s.init_radius)
    return search, search.best(starts, lambda done: job.bars.move(bar, done))
