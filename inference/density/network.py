"""The log density of any target; a network's is that of its NumPyro model, with that of any of its observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpyro  # noqa: F401 - whole, before a part of it
from jaxtyping import Array, Float, Int
from numpyro.handlers import block

from onebasin.models.networks.bayesian import BayesianNetwork, NetworkTarget
from onebasin.models.networks.likelihood import Categorical
from onebasin.models.target import Target

from ..contracts.density import Values
from .numpyro import NumpyroDensity

if TYPE_CHECKING:
    from .stan_vectors import StanVectors


def density_of(
    target: Target, progress: Callable[[str], None] | None = None
) -> NumpyroDensity | StanVectors:
    """The log density of any target: by its NumPyro model where it has one, else by its Stan program.

    Raises
    ------
    ValueError
        If it has neither.
    TypeError
        If JAX is in single precision, which Stan has not.
    StanError
        If the Stan program does not compile or its data do not fit.
    """
    if target.numpyro_model is None and target.stan_program is not None:
        from .stan_vectors import StanVectors

        return StanVectors.of(target, progress)
    return numpyro_density_of(target)


def numpyro_density_of(target: Target) -> NumpyroDensity:
    """The log density of a target by its NumPyro model.

    Raises
    ------
    ValueError
        If it has none.
    """
    if isinstance(target, NetworkTarget):
        return NetworkDensity.of(target)
    return NumpyroDensity.of(target)


def prior_model(target: NetworkTarget) -> Callable[[], None]:
    """The target's NumPyro model without its likelihood.

    One observation says which variables there are; hidden, it takes no part in the density.
    """

    def model() -> None:
        target.model.numpyro_model(jnp.asarray(target.x[:1]), jnp.asarray(target.y[:1]))

    return block(model, hide=["y"])


def outputs_log_likelihood(
    model: BayesianNetwork, output: jax.Array, values: Values, y: Any
) -> Float[Array, " obs"]:
    """Log likelihood of observations, given outputs of all heads (obs, out), and ``sigma`` among the values."""
    likelihood = model.likelihood
    if isinstance(likelihood, Categorical):
        return likelihood.log_density(output, y)
    return likelihood.log_density(output, y, values.get("sigma"))


@dataclass(frozen=True, eq=False)
class NetworkDensity(NumpyroDensity):
    """A network with its data, in the precision of the caller's context.

    Attributes
    ----------
    observed : tuple of array or None
        Inputs and targets in the place of the target's own, such as those that JAX traces.
    """

    target: NetworkTarget
    observed: tuple[jax.Array, jax.Array] | None = None

    @property
    def data(self) -> tuple[jax.Array, jax.Array]:
        """Inputs and targets of all observations."""
        if self.observed is not None:
            return self.observed
        return jnp.asarray(self.target.x), jnp.asarray(self.target.y)

    def log_likelihood(
        self, vector: Float[Array, " param"], rows: Int[Array, " row"] | None = None
    ) -> Float[Array, " term"]:
        """Log likelihood of each observation, or of each of some."""
        x, y = self.data if rows is None else (part[rows] for part in self.data)
        values = self.constrain(vector)
        output = self.target.model.network.apply(values, x)
        return outputs_log_likelihood(self.target.model, output, values, y)

    @property
    def _prior_model(self) -> Callable[[], None]:
        return prior_model(self.target)
