"""The two terms of the ELBO without symmetry: the expected log likelihood, and the divergence from the prior.

Both are Monte Carlo means over draws from q, with two exceptions for a network with free parametrisation. Its normal
prior's part of the divergence is in closed form. And with a mean-field q, values of layers can be drawn instead of
weights (local reparametrisation, Kingma, Salimans and Welling 2015), which gives the expected log likelihood at each
observation exactly as much, with less noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeGuard

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.networks.local_reparametrisation import sample_outputs
from onebasin.models.target import Target

from ..density.base import Values
from ..density.network import NetworkDensity, outputs_log_likelihood
from ..density.numpyro import NumpyroDensity
from .families.base import Family, Parameters
from .families.mean_field import MeanField
from .settings import SymmetrisedSettings

Data = tuple[jax.Array, jax.Array] | None
"""Inputs and targets of a network's observations; None for all of them, and for other models."""

PIECE = 20_000_000
"""Values of a layer that an evaluation with local reparametrisation holds at a time, at the most."""


@dataclass(frozen=True)
class Objective:
    """The ELBO of a target's density under a family; `local` says whether layers' values are drawn."""

    density: NumpyroDensity
    family: Family
    local: bool

    def likelihood(
        self, p: Parameters, key: jax.Array, draws: Float[Array, "sample param"], data: Data
    ) -> Float[Array, " sample"]:
        """Log likelihood of some observations for each draw.

        With local reparametrisation the draws serve what is no weight, and the layers' values are drawn anew.
        """
        density = self.density
        if not isinstance(density, NetworkDensity):
            return jax.vmap(lambda v: jnp.sum(density.log_likelihood(v)))(draws)
        model, (x, y) = density.target.model, data or density.data

        def one(output: jax.Array, values: Values) -> jax.Array:
            return jnp.sum(outputs_log_likelihood(model, output, values, y))

        values = jax.vmap(density.constrain)(draws)
        if not self.local:
            return jax.vmap(lambda v: one(model.network.apply(v, x), v))(values)
        mean, sd = self._moments(p)
        output = sample_outputs(key, model.network, mean, sd, x, len(draws))
        return jax.vmap(one)(output, values)

    def evaluate(
        self, p: Parameters, key: jax.Array, draws: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Log likelihood of all observations for each draw, a bounded piece at a time."""
        density = self.density
        if not (self.local and isinstance(density, NetworkDensity)):
            return jax.lax.map(lambda v: self.likelihood(p, key, v[None], None)[0], draws)
        x, y = density.data
        widest = max(density.target.model.network.widths[1:])
        together = max(1, PIECE // (len(draws) * widest))

        def one(row: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            number, x, y = row
            key_row = jax.random.fold_in(key, number)
            return self.likelihood(p, key_row, draws, (x[None], y[None]))

        rows = (jnp.arange(len(x)), x, y)
        return jnp.sum(jax.lax.map(one, rows, batch_size=together), axis=0)

    def log_prior(
        self, p: Parameters, draws: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Log prior density of each draw; or its expectation, where that is known."""
        if not has_normal_weights(self.density.target, self.family):
            return jax.vmap(self.density.log_prior)(draws)
        sds = _prior_sds(self.density.target)
        mean, sd = self._moments(p)
        expected = [_expected(mean[name], sd[name], scale) for name, scale in sds.items()]
        if len(sds) == len(mean):
            return jnp.broadcast_to(sum(expected), draws.shape[:1])
        return sum(expected) + jax.vmap(lambda v: self._log_prior_of_others(v, sds))(draws)

    def _log_prior_of_others(self, vector: jax.Array, sds: dict[str, float]) -> jax.Array:
        """Log prior of what is no weight: with all weights at zero, less the weights' own."""
        coordinates = self.density.unravel(vector)
        still = {n: jnp.zeros_like(z) if n in sds else z for n, z in coordinates.items()}
        zero = [_expected(still[n], still[n], scale) for n, scale in sds.items()]
        return self.density.log_prior(self.density.ravel(still)) - sum(zero)

    def _moments(self, p: Parameters) -> tuple[Values, Values]:
        return self.density.unravel(p["loc"]), self.density.unravel(jnp.exp(p["log_scale"]))


def has_normal_weights(target: Target, family: Family) -> TypeGuard[NetworkTarget]:
    """Whether weights are independent normals under q and under the prior, both in the natural space."""
    if not (isinstance(target, NetworkTarget) and isinstance(family, MeanField)):
        return False
    return target.model.parametrisation.label == "free"


def applies_locally(target: Target, family: Family, settings: SymmetrisedSettings) -> bool:
    """Whether layers' values are drawn.

    Raises
    ------
    ValueError
        If it was asked for where it does not apply.
    """
    fits = has_normal_weights(target, family)
    if settings.local_reparametrisation and not fits:
        raise ValueError(
            "`local_reparametrisation` is True, but it applies to networks with free parametrisation and "
            "family='meanfield' alone: elsewhere a layer's values are not normal given the layer before. Use None, "
            "or False."
        )
    return fits if settings.local_reparametrisation is None else settings.local_reparametrisation


def _prior_sds(target: NetworkTarget) -> dict[str, float]:
    """Standard deviation of the normal prior of every weight matrix and bias vector."""
    layers, prior = target.model.network.layers, target.model.prior
    weights = zip(layers, prior.weight_scales(len(layers)), strict=True)
    biases = zip(layers, prior.bias_scales(len(layers)), strict=True)
    named = {layer.weight: scale for layer, scale in weights if layer.weight}
    return named | {layer.bias: scale for layer, scale in biases if layer.bias}


def _expected(mean: jax.Array, sd: jax.Array, scale: float) -> jax.Array:
    """Expectation of log N(w; 0, scale^2) over w ~ N(mean, sd^2), summed over entries."""
    constant = mean.size * (math.log(scale) + 0.5 * math.log(2 * math.pi))
    return -0.5 * jnp.sum(mean**2 + sd**2) / scale**2 - constant
