"""The log density of any target, and a wrapper that evaluates it at many points and counts the evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, override

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - import all of NumPyro before a part of it
from jaxtyping import Array, Float
from numpyro.handlers import block, trace
from numpyro.handlers import seed as seeded

from onebasin.base.precision import precision
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
    """Return the log density of any target, from its NumPyro model if it has one, else from its Stan program."""
    if target.numpyro_model is None and target.stan_program is not None:
        from .stan_vectors import StanVectors

        return StanVectors.of(target, progress)
    return numpyro_density_of(target)


def numpyro_density_of(target: Target) -> NumpyroDensity:
    """Return the log density of a target from its NumPyro model."""
    if isinstance(target, NetworkTarget):
        return NetworkDensity.of(target)
    return NumpyroDensity.of(target)


@dataclass(frozen=True, eq=False)
class NetworkDensity(NumpyroDensity):
    """The log density of a network, in the precision of the caller's context.

    `observed` are inputs and outputs that replace the target's own data, for example traced arrays.
    """

    target: NetworkTarget
    observed: tuple[jax.Array, jax.Array] | None = None

    @classmethod
    def of(cls, target: Target) -> NetworkDensity:
        """Return the density of a network; see `NumpyroDensity`."""
        found = super().of(target)
        assert isinstance(found, cls), "`of` makes an object of its own class"
        return found

    @property
    def data(self) -> tuple[jax.Array, jax.Array]:
        """Inputs and outputs of all observations."""
        if self.observed is not None:
            return self.observed
        return jnp.asarray(self.target.x), jnp.asarray(self.target.y)

    def log_likelihood(self, vector: Vector, rows: Rows = None) -> Terms:
        """Return the log likelihood of every observation, or of the observations `rows`."""
        x, y = self.data if rows is None else (part[rows] for part in self.data)
        values = self.constrain(vector)
        output = self.target.model.network.apply(values, x)
        likelihood = self.target.model.likelihood
        if isinstance(likelihood, Categorical):
            return likelihood.log_density(output, y)
        return likelihood.log_density(output, y, values.get("sigma"))

    def prior_values(self, key: jax.Array) -> Values:
        """Draw the values of a network from the prior."""
        sites = trace(seeded(self._prior_model, key)).get_trace()
        return {name: site["value"] for name, site in sites.items()}

    def he_values(self, key: jax.Array) -> Values:
        """Draw initial values of a network as in He et al. 2015; `Ensemble.init` describes them."""
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
        """Draw initial points by `he_values`, unconstrained, one per key."""
        return jax.vmap(self.unconstrain)(jax.jit(jax.vmap(self.he_values))(keys))

    @property
    def _prior_model(self) -> Callable[[], None]:
        """The model without its likelihood: its single observation is hidden from the density."""

        def model() -> None:
            x, y = self.target.x[:1], self.target.y[:1]
            self.target.model.numpyro_model(jnp.asarray(x), jnp.asarray(y))

        return block(model, hide=["y"])


class StanNetworkValues(NumpyroValues):
    """The density of a network from its Stan program, which has the same unconstrained coordinates as NumPyro."""

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
        return None  # Stan does not separate likelihood and prior.


Points = Float[np.ndarray, "point param"]
Heights = Float[np.ndarray, " point"]


def in_blocks(function: Callable[..., Any], *values: Any, size: int) -> Any:
    """Call a compiled function with values (point, ...) in blocks of the size for which it was compiled."""
    count = len(jax.tree.leaves(values)[0])
    parts = []
    for first in range(0, count, size):
        rows = np.minimum(np.arange(first, first + size), count - 1)
        found = function(*jax.tree.map(lambda value, r=rows: np.asarray(value)[r], values))
        parts.append(jax.tree.map(np.asarray, found))
    return jax.tree.map(lambda *each: np.concatenate(each)[:count], *parts)


def in_double(function: Callable[..., Any], size: int | None = None) -> Callable[..., Any]:
    """Compile a function of one point so that it maps NumPy arrays (point, ...) in blocks, in double precision."""
    compiled = jax.jit(jax.vmap(function))

    def call(values: Any) -> Any:
        with precision("float64"):
            found = compiled(values) if size is None else in_blocks(compiled, values, size=size)
            return jax.tree.map(np.asarray, found)

    return call


class CountedDensity:
    """A target's log density over vectors, for NumPy arrays in double precision, that counts its evaluations.

    `gradients` counts gradients; a Hessian-vector product counts as two. `heights` counts other log densities.
    """

    BLOCK = 64

    def __init__(self, density: Density) -> None:
        self.density = density
        self.gradients = self.heights = 0
        height = density.log_density
        slope = jax.grad(height)
        self._heights = jax.jit(jax.vmap(height))
        self._gradients = jax.jit(jax.vmap(jax.value_and_grad(height)))
        self._products = jax.jit(jax.vmap(lambda x, v: jax.jvp(slope, (x,), (v,))[1]))
        self._constrain = jax.jit(jax.vmap(density.constrain))
        self._quantities = jax.jit(jax.vmap(lambda x: density.quantities(density.unravel(x))))

    @classmethod
    def of(cls, target: Target, progress: Callable[[str], None] | None = None) -> CountedDensity:
        """Make the counting density of a target."""
        return cls(density_of(target, progress))

    @property
    def size(self) -> int:
        """Number of coordinates of a vector."""
        return self.density.size

    def log_density(self, points: Points) -> Heights:
        """Return log densities, -inf where they are not finite."""
        self.heights += len(points)
        values = in_blocks(self._heights, points, size=self.BLOCK)
        return np.where(np.isfinite(values), values, -np.inf)

    def gradient(self, points: Points) -> tuple[Heights, Points]:
        """Return log densities and gradients; the log density is -inf where either is not finite."""
        self.gradients += len(points)
        values, slopes = in_blocks(self._gradients, points, size=self.BLOCK)
        there = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
        return np.where(there, values, -np.inf), slopes

    def products(self, points: Points, directions: Points) -> Points:
        """Return the product of the Hessian at each point with the direction in the same row."""
        self.gradients += 2 * len(points)
        found: Points = in_blocks(self._products, points, directions, size=self.BLOCK)
        return found

    def hessian(self, point: Float[np.ndarray, " param"]) -> Float[np.ndarray, "param param"]:
        """Return the second derivatives at a point."""
        found = self.products(np.tile(point, (self.size, 1)), np.eye(self.size))
        return (found + found.T) / 2

    def constrain(self, points: Points) -> dict[str, np.ndarray]:
        """Return values (point, ...) of the variables."""
        found: dict[str, np.ndarray] = in_blocks(self._constrain, points, size=self.BLOCK)
        return found

    def quantities(self, points: Points) -> dict[str, np.ndarray]:
        """Return values (point, ...) of the variables and derived quantities."""
        found: dict[str, np.ndarray] = in_blocks(self._quantities, points, size=self.BLOCK)
        return found
