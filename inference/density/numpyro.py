"""The log density of a NumPyro model at given values of its sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.util import log_density
from numpyro.infer.util import log_likelihood as numpyro_log_likelihood

from onebasin.models.target import Target

from ..keys import Purpose, keys_for
from ..mcmc.numpyro import unconstrain


class NumpyroDensity:
    """Evaluates a target's density on the constrained scale, without the Jacobian of any chart.

    Parameters
    ----------
    target : Target
        With a NumPyro model.

    Attributes
    ----------
    derived : tuple of str
        Quantities that follow from the sampled sites; none are looked at.
    """

    derived: tuple[str, ...] = ()

    def __init__(self, target: Target) -> None:
        self.target = target
        self._log_density = jax.jit(jax.vmap(self._at))  # once: a new function would compile anew

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Points to try, uniform within +-2 in the unconstrained space: name to array (point, ...)."""
        space = unconstrain(self.target, keys_for(Purpose.POINT, seed, count), 2.0)
        values = jax.vmap(space.constrain)(space.initial)
        return {name: np.asarray(values[name]) for name in space.initial}

    def log_density(self, values: Mapping[str, Any]) -> np.ndarray:
        """Log prior plus log likelihood at points (point, ...): array (point,); -inf outside the support."""
        return np.asarray(self._log_density(dict(values)))

    def log_likelihood(self, values: Mapping[str, Any]) -> np.ndarray:
        """Log likelihood of all observed sites at points (point, ...): array (point,)."""
        sites = numpyro_log_likelihood(self.target.numpyro_model, dict(values))
        totals = [np.asarray(v).reshape(len(v), -1).sum(-1) for v in sites.values()]
        return np.sum(totals, axis=0)

    def _at(self, point: dict[str, Any]) -> jax.Array:
        density, sites = log_density(self.target.numpyro_model, (), {}, point)
        inside = [jnp.all(sites[name]["fn"].support(value)) for name, value in point.items()]
        return jnp.where(jnp.all(jnp.stack(inside)), density, -jnp.inf)
