"""The log density of a NumPyro model over values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
from jaxtyping import Float
from numpyro.infer.util import log_density

from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.density import Values
from .numpyro import NumpyroDensity, site_terms
from .start import random_starts


class NumpyroValues:
    """Evaluates a target's density on the constrained scale, without the Jacobian of any chart; see `base`.

    Parameters
    ----------
    target : Target
        With a NumPyro model.
    progress : callable, optional
        As of every engine's density; nothing here takes long.
    """

    def __init__(self, target: Target, progress: Callable[[str], None] | None = None) -> None:
        del progress
        self.density = NumpyroDensity.of(target)
        self._quantities = jax.jit(jax.vmap(self._derived))
        self._compiled = jax.jit(jax.vmap(self._one))  # once: a new function would compile anew

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.density.names

    @cached_property
    def derived(self) -> tuple[str, ...]:
        """The model's deterministic sites; of a network none, whose symmetry follows from its architecture."""
        if self.density.target.is_network:
            return ()
        return tuple(self.derived_at(self.points(1, 0), 0))

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """What follows from the variables at points (point, ...)."""
        del seed  # a model's draws all have names
        inferred = {name: values[name] for name in self.names}
        return {n: np.asarray(v) for n, v in self._quantities(inferred).items()}

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Points to try, uniform within +-2 in the unconstrained space: name to array (point, ...)."""
        vectors = random_starts(self.density, keys_for(Purpose.POINT, seed, count), 2.0)
        return {n: np.asarray(v) for n, v in jax.vmap(self.density.constrain)(vectors).items()}

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Log density at points (point, ...); -inf outside the support."""
        return np.asarray(self._compiled(dict(values)))

    def log_likelihood(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Log likelihood of all data at points (point, ...)."""
        model = self.density.model
        total = jax.vmap(lambda v: sum(site_terms(model, v, observed=True), jnp.zeros(())))
        return np.asarray(total(dict(values)))

    def _derived(self, point: Values) -> Values:
        _, sites = log_density(self.density.model, (), {}, point)
        return {n: s["value"] for n, s in sites.items() if s["type"] == "deterministic"}

    def _one(self, point: Values) -> jax.Array:
        density, sites = log_density(self.density.model, (), {}, point)
        inside = [jnp.all(sites[name]["fn"].support(value)) for name, value in point.items()]
        return jnp.where(jnp.all(jnp.stack(inside)), density, -jnp.inf)
