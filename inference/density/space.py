"""The unconstrained space of a target as vectors (param,), with log prior and log likelihood apart.

The log prior has the charts' log Jacobians in it; both are in nats and complete, constants included. Sites stand in
the vector in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpyro.handlers import seed as seeded
from numpyro.handlers import trace
from numpyro.infer.util import compute_log_probs

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.target import Target

from ..mcmc.numpyro import require_numpyro
from .charts import Bijection, Chart
from .network import prior_target

Values = dict[str, jax.Array]


@dataclass(frozen=True)
class Space:
    """Vectors, and what they mean.

    Attributes
    ----------
    charts : dict
        Site name to chart.
    model : callable
        The NumPyro model, conditioned on all data.
    prior_model : callable
        The same; or, of a network, without its likelihood.
    """

    charts: dict[str, Chart]
    model: Callable[[], None]
    prior_model: Callable[[], None]

    @property
    def size(self) -> int:
        """Coordinates."""
        return sum(int(np.prod(chart.shape)) for chart in self.charts.values())

    def unravel(self, vector: Float[Array, " param"]) -> Values:
        """Coordinates of every site."""
        like = {name: jnp.zeros(chart.shape, vector.dtype) for name, chart in self.charts.items()}
        return ravel_pytree(like)[1](vector)

    def ravel(self, coordinates: Mapping[str, Any]) -> Float[Array, " param"]:
        """The vector of coordinates of every site."""
        vector: jax.Array = ravel_pytree({name: coordinates[name] for name in self.charts})[0]
        return vector

    def places(self) -> dict[str, np.ndarray]:
        """Where every coordinate of a site stands in the vector."""
        sizes = {name: int(np.prod(self.charts[name].shape)) for name in sorted(self.charts)}
        ends = np.cumsum(list(sizes.values()))
        return {
            name: np.arange(end - size, end).reshape(self.charts[name].shape)
            for (name, size), end in zip(sizes.items(), ends, strict=True)
        }

    def constrain(self, vector: Float[Array, " param"]) -> Values:
        """Values of every site."""
        return {n: self.charts[n].forward(z) for n, z in self.unravel(vector).items()}

    def from_values(self, values: Mapping[str, Any]) -> Float[Array, " param"]:
        """The vector of given values."""
        return self.ravel({n: c.inverse(jnp.asarray(values[n])) for n, c in self.charts.items()})

    def log_prior(self, vector: Float[Array, " param"]) -> Float[Array, ""]:
        """Log prior density of one vector."""
        coordinates, values = self.unravel(vector), self.constrain(vector)
        jacobians = [c.log_jacobian(coordinates[n], values[n]) for n, c in self.charts.items()]
        return sum(jacobians, _log_densities(self.prior_model, values)[0])

    def log_likelihood(self, vector: Float[Array, " param"]) -> Float[Array, ""]:
        """Log likelihood of all data at one vector."""
        return _log_densities(self.model, self.constrain(vector))[1]


def space_of(target: Target) -> Space:
    """The space of a target, in NumPyro's own charts.

    Raises
    ------
    ValueError
        If the target has no NumPyro model.
    """
    model = require_numpyro(target)
    sites = trace(seeded(model, jax.random.key(0))).get_trace()
    charts: dict[str, Chart] = {
        name: Bijection(site["fn"].support, jnp.shape(site["value"]))
        for name, site in sorted(sites.items())
        if site["type"] == "sample" and not site["is_observed"]
    }
    network = isinstance(target, NetworkTarget)
    return Space(charts, model, prior_target(target).numpyro_model if network else model)  # type: ignore[arg-type]


def _log_densities(model: Callable[[], None], values: Values) -> tuple[jax.Array, jax.Array]:
    """Summed log densities of the sites that are inferred, and of those observed."""
    log_probs, sites = compute_log_probs(model, (), {}, values)
    zero = jnp.zeros(())
    seen = {name: bool(sites[name]["is_observed"]) for name in log_probs}
    prior = sum((v for n, v in log_probs.items() if not seen[n]), zero)
    likelihood = sum((v for n, v in log_probs.items() if seen[n]), zero)
    return prior, likelihood
