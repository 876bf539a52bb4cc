"""A network's log density in the unconstrained space, taken apart: the prior, and the likelihood of any observations.

`log_prior` has the log Jacobian in it. With all observations, prior plus likelihood are minus the potential of
`numpyro_mcmc.unconstrain`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpyro.handlers import block

from onebasin.models.networks.bayesian import BayesianNetwork, NetworkTarget
from onebasin.models.networks.likelihood import Categorical
from onebasin.models.target import Target

from ..mcmc.numpyro import unconstrain

Point = dict[str, jax.Array]


def prior_target(target: NetworkTarget) -> Target:
    """The target without its likelihood: the same variables under their prior.

    One observation says which sites there are; hidden, it takes no part in the density.
    """

    def model() -> None:
        target.model.numpyro_model(jnp.asarray(target.x[:1]), jnp.asarray(target.y[:1]))

    return Target(target.name, numpyro_model=block(model, hide=["y"]))


def outputs_log_likelihood(
    model: BayesianNetwork, output: jax.Array, values: Point, y: Any
) -> Float[Array, " obs"]:
    """Log likelihood of observations, given the network's outputs (obs, out) and the noise among the values."""
    likelihood = model.likelihood
    if isinstance(likelihood, Categorical):
        return likelihood.log_density(output, y)
    noise = values["sigma"] if likelihood.noise_sd is None else likelihood.noise_sd
    return likelihood.log_density(output, y, noise)


class NetworkDensity:
    """The parts of a target's density, in the precision of the caller's context.

    Parameters
    ----------
    target : NetworkTarget
        The network with its data.
    keys : array of keys (start,)
        For starting points, uniform within +-init_radius in the unconstrained space.
    init_radius : float
        See above.

    Attributes
    ----------
    initial : dict
        Site name to starting points (start, ...).
    constrain : callable
        One point to the values of the sites.
    x, y : arrays
        The data.
    """

    def __init__(self, target: NetworkTarget, keys: jax.Array, init_radius: float = 2.0) -> None:
        self.model = target.model
        self.x, self.y = jnp.asarray(target.x), jnp.asarray(target.y)
        space = unconstrain(prior_target(target), keys, init_radius)
        self.initial, self.constrain = space.initial, space.constrain
        self._prior_potential = space.potential

    def log_prior(self, point: Point) -> Float[Array, ""]:
        """Log density of the prior at one unconstrained point, with the log Jacobian."""
        return -self._prior_potential(point)

    def log_likelihood(self, point: Point, x: Any, y: Any) -> Float[Array, " obs"]:
        """Log likelihood of observations at one unconstrained point."""
        values = self.constrain(point)
        output = self.model.network.apply(values, x)
        return outputs_log_likelihood(self.model, output, values, y)

    def log_density(self, point: Point) -> Float[Array, ""]:
        """Log prior plus log likelihood of all observations."""
        return self.log_prior(point) + jnp.sum(self.log_likelihood(point, self.x, self.y))
