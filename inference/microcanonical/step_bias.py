"""Stein's identities for each coordinate, which reveal a bias from the step size.

For draws z of a density p with the score g = grad log p, integration by parts gives E[g_i] = 0 and E[(z_i - c_i) g_i]
= -1 for any constants c. This requires a continuous density, so kinks (ReLU) are allowed. Suppose that the draws come
from a different density, that both are normal, and that only coordinate i differs. Then E[g_i] over the standard
deviation of g_i is how far its mean lies below the true one, in conditional standard deviations, and -E[(z_i - c_i)
g_i] is the ratio of its variance to the true one.

The identities also hold within each mode, so they do not show whether chains found every mode.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from ..density.stan_vectors import Density

BATCHES = 10  # Number of batches per chain, whose means give the Monte Carlo error.
ERROR_RATE = 0.01  # Probability that any interval misses for correct draws, over all coordinates and both identities.
CLOSE = {
    "float64": 1e-6,
    "float32": 1e-2,
}  # Relative tolerance between recorded and recomputed log densities.


Means = dict[str, Float[np.ndarray, " param"]]


class Identities:
    """A check of both identities for draws from one density, compiled once per number of draws."""

    def __init__(self, density: Density) -> None:
        self.density = density
        self._vector = jax.jit(density.unconstrain)
        self._batch = jax.jit(self._means)

    def of(self, posterior: xr.DataTree) -> dict[str, Any] | None:
        """Measure the deviations from the identities, with simultaneous intervals for all coordinates.

        Return `shift` and `spread`, the number of `coordinates`, and the `error_rate`. `shift` and `spread` have the
        `coordinate` with the largest significant deviation and, over all coordinates, `least` (the largest certain
        deviation) and `most` (the largest possible deviation). Return None for too few draws or draws outside the
        support.
        """
        draws = posterior["posterior"].to_dataset()
        lp = posterior["sample_stats"].to_dataset()["lp"]
        size = draws.sizes["draw"] // BATCHES
        if size < 2:
            return None
        names = self.density.names
        first = self._vector({name: jnp.asarray(draws[name].values[0, 0]) for name in names})
        found: list[Means] = []
        for chain in range(draws.sizes["chain"]):
            drawn = {name: draws[name].isel(chain=chain).values for name in names}
            heights = lp.isel(chain=chain).values
            for number in range(BATCHES):
                part = slice(number * size, (number + 1) * size)
                values = {name: jnp.asarray(each[part]) for name, each in drawn.items()}
                misfit, means = self._batch(values, jnp.asarray(heights[part]), first)
                if not misfit < CLOSE[str(lp.dtype)]:
                    return None
                found.append({name: np.asarray(mean, np.float64) for name, mean in means.items()})
        from scipy.stats import t

        means = {name: np.stack([m[name] for m in found]) for name in found[0]}
        count, size = means["score"].shape
        total = {name: mean.mean(axis=0) for name, mean in means.items()}
        sd = np.sqrt(np.maximum(total["square"] - total["score"] ** 2, 0))
        if not (sd > 0).all():  # A flat direction or a value that is not finite provides no unit.
            return None
        width = t.isf(ERROR_RATE / (2 * 2 * size), count - 1) / math.sqrt(count)
        shifts = means["score"] / sd
        ratios = -(means["product"] - total["away"] * means["score"])
        return {
            "shift": _farthest(shifts.mean(0), width * shifts.std(0, ddof=1), self.density),
            "spread": _farthest(ratios.mean(0) - 1, width * ratios.std(0, ddof=1), self.density),
            "coordinates": size,
            "error_rate": ERROR_RATE,
        }

    def _means(
        self, values: dict[str, jax.Array], recorded: jax.Array, first: jax.Array
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Return means over a batch of draws, and the largest relative error of their recorded log densities."""
        z = jax.vmap(self.density.unconstrain)(values)
        heights, scores = jax.vmap(jax.value_and_grad(self.density.log_density))(z)
        misfit = jnp.max(jnp.abs(heights - recorded) / (1 + jnp.abs(recorded)))
        away = z - first[None]  # Avoid rounding errors for coordinates far from zero.
        return misfit, {
            "score": scores.mean(0),
            "square": (scores**2).mean(0),
            "away": away.mean(0),
            "product": (away * scores).mean(0),
        }


def _farthest(
    distances: Float[np.ndarray, " param"], errors: Float[np.ndarray, " param"], density: Density
) -> dict[str, Any]:
    certain = np.abs(distances) - errors
    worst = int(np.argmax(certain))
    name, places = next((n, p) for n, p in density.places().items() if worst in p)
    place = ",".join(map(str, np.argwhere(places == worst)[0]))
    return {
        "coordinate": f"{name}[{place}]" if place else str(name),
        "least": float(max(certain[worst], 0.0)),
        "most": float(np.max(np.abs(distances) + errors)),
    }
