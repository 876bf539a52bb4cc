"""The two terms of the ELBO without symmetry: the expected log likelihood, and the divergence from the prior.

Both are Monte Carlo means over draws from q, with two exceptions for a network with free weights and a mean-field q.
The divergence of its weights and biases from their prior is in closed form. And values of layers can be drawn instead
of weights (local reparametrisation, Kingma, Salimans and Welling 2015), which gives the expected log likelihood at each
observation exactly as much, with less noise. Biases that are ordered are normal in no space that adds up: for the
likelihood they are drawn, through their chart, one vector for all observations of a sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from onebasin.base.errors import ArgumentError
from onebasin.models.networks.local_reparametrisation import sample_outputs

from ..contracts.density import Values
from ..density.network import NetworkDensity, outputs_log_likelihood
from ..density.stan_vectors import Density
from .gaussians import Draws, GaussianFamily, MeanField, Parameters, Sampled, sample

Data = tuple[jax.Array, jax.Array] | None
"""Inputs and targets of a network's observations; None for all of them, and for other models."""

PIECE = 20_000_000
"""Values of a layer that an evaluation with local reparametrisation holds at a time, at the most."""


@dataclass(frozen=True)
class Objective:
    """The ELBO of a target's density under a family.

    `local` says whether layers' values are drawn; `frugal`, of ADVI, whether only what is no normal weight is drawn
    then, and layers' noise is kept for the gradient.
    """

    density: Density
    family: GaussianFamily
    local: bool
    frugal: bool = False

    @property
    def normal_sds(self) -> dict[str, float]:
        """Prior standard deviations of weights and biases that are independent normals under q and under the prior."""
        if isinstance(self.density, NetworkDensity) and isinstance(self.family, MeanField):
            return self.density.normal_sds
        return {}

    def draw(self, p: Parameters, key: jax.Array, num: int) -> Draws:
        """Draws for the terms below; frugally, of what is no normal weight alone, which costs little.

        The weights then stand at their means, and no term takes them from there.
        """
        if not (self.local and self.frugal):
            return sample(self.family, p, key, num)
        loc, places = p["loc"], self._others()
        eps = jax.random.normal(key, (num, len(places)), loc.dtype)
        drawn = loc[None, places] + jnp.exp(p["log_scale"])[None, places] * eps
        return jnp.broadcast_to(loc[None], (num, len(loc))).at[:, places].set(drawn)

    def likelihood(self, p: Parameters, key: jax.Array, draws: Draws, data: Data) -> Sampled:
        """Log likelihood of some observations for each draw.

        With local reparametrisation the draws serve what is no normal weight, and the layers' values are drawn again.
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
        ordered = {name: values[name] for name in density.ordered_biases}
        output = sample_outputs(
            key, model.network, mean, sd, x, len(draws), drawn=ordered, keep_noise=self.frugal
        )
        return jax.vmap(one)(output, values)

    def evaluate(self, p: Parameters, key: jax.Array, draws: Draws) -> Sampled:
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

    def elbo_values(self, p: Parameters, key: jax.Array, draws: Draws) -> Sampled:
        """Values whose mean is the ELBO, of all data."""
        return self.evaluate(p, key, draws) + self.log_prior(p, draws) + self.family.entropy(p)

    def log_prior(self, p: Parameters, draws: Draws) -> Sampled:
        """Log prior density of each draw; or its expectation, where that is known."""
        density, sds = self.density, self.normal_sds
        if not sds:
            return jax.vmap(density.log_prior)(draws)
        assert isinstance(density, NetworkDensity)
        ordered = density.ordered_biases
        mean, sd = self._moments(p)

        def known(mean: Values, sd: Values) -> jax.Array:
            expected = [
                (_expected_of_ordered if n in ordered else _expected)(mean[n], sd[n], scale)
                for n, scale in sds.items()
            ]
            return sum(expected, jnp.zeros(()))

        def others(vector: jax.Array) -> jax.Array:
            """Log prior of what is no weight and no bias: with all of those at zero, less their own."""
            coordinates = density.unravel(vector)
            still = {n: jnp.zeros_like(z) if n in sds else z for n, z in coordinates.items()}
            return density.log_prior(density.ravel(still)) - known(still, still)

        if len(sds) == len(mean):
            return jnp.broadcast_to(known(mean, sd), draws.shape[:1])
        return known(mean, sd) + jax.vmap(others)(draws)

    def _moments(self, p: Parameters) -> tuple[Values, Values]:
        return self.density.unravel(p["loc"]), self.density.unravel(jnp.exp(p["log_scale"]))

    def _others(self) -> Int[np.ndarray, " other"]:
        """Places of the coordinates that are no normal weights."""
        assert isinstance(self.density, NetworkDensity)
        normal = set(self.normal_sds) - set(self.density.ordered_biases)
        places = [at.ravel() for name, at in self.density.places().items() if name not in normal]
        return np.concatenate([*places, np.zeros(0, np.int64)])


def applies_locally(density: Density, family: GaussianFamily, wanted: bool | None) -> bool:
    """Tell whether layers' values are drawn, given the setting `local_reparametrisation`."""
    fits = bool(Objective(density, family, False).normal_sds)
    if wanted and not fits:
        raise ArgumentError(
            "`local_reparametrisation` is True, but it applies to networks with free weights and family='meanfield' "
            "alone: elsewhere a layer's values are not normal given the layer before. Use None, or False."
        )
    return fits if wanted is None else wanted


def _expected(mean: jax.Array, sd: jax.Array, scale: float) -> jax.Array:
    """Expectation of log N(w; 0, scale^2) over w ~ N(mean, sd^2), summed over entries."""
    constant = mean.size * (math.log(scale) + 0.5 * math.log(2 * math.pi))
    return -0.5 * jnp.sum(mean**2 + sd**2) / scale**2 - constant


def _expected_of_ordered(mean: jax.Array, sd: jax.Array, scale: float) -> jax.Array:
    """The same of ordered biases, by their coordinates z ~ N(mean, sd^2), with the log Jacobian of their chart.

    b_k = z_1 + exp(z_2) + ... + exp(z_k) is a sum of independent terms, whose means and variances are known.
    """
    step = jnp.exp(mean[1:] + 0.5 * sd[1:] ** 2)
    means = jnp.cumsum(jnp.concatenate([mean[:1], step]))
    variances = jnp.cumsum(jnp.concatenate([sd[:1] ** 2, step**2 * jnp.expm1(sd[1:] ** 2)]))
    log_orders = math.lgamma(mean.size + 1)
    return _expected(means, jnp.sqrt(variances), scale) + log_orders + jnp.sum(mean[1:])
