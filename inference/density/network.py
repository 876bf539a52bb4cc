"""The log density of any target; a network's is that of its NumPyro model, with that of any of its observations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, override

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
from jaxtyping import Array, Float
from numpyro.handlers import block, trace
from numpyro.handlers import seed as seeded

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.networks.likelihood import Categorical, Gaussian
from onebasin.models.target import Target
from onebasin.stan.library import open_library
from onebasin.stan.network import pack_unconstrained
from onebasin.stan.program import definition

from ..contracts.density import Rows, Terms, Values, Vector
from .numpyro import NumpyroDensity, NumpyroValues

if TYPE_CHECKING:
    from .stan_vectors import Density


def density_of(target: Target, progress: Callable[[str], None] | None = None) -> Density:
    """The log density of any target: by its NumPyro model where it has one, else by its Stan program."""
    if target.numpyro_model is None and target.stan_program is not None:
        from .stan_vectors import StanVectors

        return StanVectors.of(target, progress)
    return numpyro_density_of(target)


def numpyro_density_of(target: Target) -> NumpyroDensity:
    """The log density of a target by its NumPyro model."""
    if isinstance(target, NetworkTarget):
        return NetworkDensity.of(target)
    return NumpyroDensity.of(target)


@dataclass(frozen=True, eq=False)
class NetworkDensity(NumpyroDensity):
    """A network with its data, in the precision of the caller's context.

    `observed` are inputs and targets in the place of the target's own, such as those that JAX traces.
    """

    target: NetworkTarget
    observed: tuple[jax.Array, jax.Array] | None = None

    @classmethod
    def of(cls, target: Target) -> NetworkDensity:
        """The density of a network; see `NumpyroDensity`."""
        found = super().of(target)
        assert isinstance(found, cls), "made by the class"
        return found

    @property
    def data(self) -> tuple[jax.Array, jax.Array]:
        """Inputs and targets of all observations."""
        if self.observed is not None:
            return self.observed
        return jnp.asarray(self.target.x), jnp.asarray(self.target.y)

    def log_likelihood(self, vector: Vector, rows: Rows = None) -> Terms:
        """Log likelihood of each observation, or of each of some."""
        x, y = self.data if rows is None else (part[rows] for part in self.data)
        values = self.constrain(vector)
        output = self.target.model.network.apply(values, x)
        likelihood = self.target.model.likelihood
        if isinstance(likelihood, Categorical):
            return likelihood.log_density(output, y)
        return likelihood.log_density(output, y, values.get("sigma"))

    def prior_values(self, key: jax.Array) -> Values:
        """Values of one network, drawn from the prior."""
        sites = trace(seeded(self._prior_model, key)).get_trace()
        return {name: site["value"] for name, site in sites.items()}

    def he_values(self, key: jax.Array) -> Values:
        """Values of one network: He et al. 2015 where a weight is free; `Ensemble.init` says the rest."""
        key_prior, key_weights = jax.random.split(key)
        values = self.prior_values(key_prior)
        model = self.target.model
        for number, layer in enumerate(model.network.layers):
            if layer.weight and not (layer.hidden and model.parametrisation.unit_norm):
                shape, dtype = values[layer.weight].shape, values[layer.weight].dtype
                noise = jax.random.normal(jax.random.fold_in(key_weights, number), shape, dtype)
                values[layer.weight] = noise * math.sqrt(2 / layer.in_dim)
            if layer.bias and not (layer.hidden and model.parametrisation.biases == "ordered"):
                values[layer.bias] = jnp.zeros_like(values[layer.bias])
        if isinstance(model.likelihood, Gaussian) and model.infers_noise:
            values["sigma"] = jnp.full_like(values["sigma"], model.likelihood.noise_scale)
        return values

    def he_starts(self, keys: jax.Array) -> Float[Array, "start param"]:
        """Unconstrained points of `he_values`, one a key."""
        return jax.vmap(self.unconstrain)(jax.jit(jax.vmap(self.he_values))(keys))

    @property
    def _prior_model(self) -> Callable[[], None]:
        """The model without its likelihood.

        One observation says which variables there are; hidden, it takes no part in the density.
        """

        def model() -> None:
            x, y = self.target.x[:1], self.target.y[:1]
            self.target.model.numpyro_model(jnp.asarray(x), jnp.asarray(y))

        return block(model, hide=["y"])


class StanNetworkValues(NumpyroValues):
    """A network's density by its Stan program, whose packing of the unconstrained space NumPyro's shares."""

    def __init__(self, target: Target, progress: Callable[[str], None] | None = None) -> None:
        super().__init__(target)
        self.library = open_library(definition(target), progress=progress)

    @override
    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        density, target = self.density, cast("NetworkTarget", self.density.target)
        points = jax.vmap(density.unconstrain)(dict(values))
        jacobians = jax.vmap(density.log_jacobian)(points)
        vectors = []
        for point in points:
            parts = pack_unconstrained(target, density.unravel(point))
            vectors.append([*parts["weights_raw"], *parts["biases_raw"], *np.log(parts["sigma"])])
        return np.asarray(self.library.log_density(np.array(vectors)) - np.asarray(jacobians))

    @override
    def log_likelihood(self, values: Mapping[str, Any]) -> None:
        return None  # Stan does not tell it from the prior
