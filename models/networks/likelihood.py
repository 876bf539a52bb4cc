"""Likelihoods of a network's outputs: Gaussian regression and categorical classification."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpyro
from jaxtyping import Array, Float, Int
from numpyro import distributions as dist

from ..checks import check_positive
from ..showing import Brief


@dataclass(frozen=True, repr=False)
class Gaussian(Brief):
    """Targets of a regression: y ~ N(output, sigma^2), independently for every output.

    Parameters
    ----------
    noise_sd : float or None
        The known standard deviation, in the units of `y`; `None` to infer it as ``sigma``.
    noise_scale : float
        Scale of the half-normal prior on ``sigma``, in the units of `y`; unused when `noise_sd` is given.

    Raises
    ------
    ValueError
        If either is not positive and finite.

    Examples
    --------
    >>> ob.BayesianNetwork(ob.Network(2, (4,)), ob.Gaussian(noise_scale=0.5)).infers_noise
    True
    """

    noise_sd: float | None = None
    noise_scale: float = 1.0

    def __post_init__(self) -> None:
        """Check both, and keep them as Python's own numbers, which JSON takes."""
        check_positive("noise_scale", self.noise_scale)
        object.__setattr__(self, "noise_scale", float(self.noise_scale))
        if self.noise_sd is not None:
            check_positive("noise_sd", self.noise_sd)
            object.__setattr__(self, "noise_sd", float(self.noise_sd))

    def observe(self, output: Float[Array, "obs out"], y: Float[Array, "obs out"] | None) -> None:
        """State the noise's prior and the observation ``y`` in NumPyro."""
        sigma = self.noise_sd
        if sigma is None:
            sigma = numpyro.sample("sigma", dist.HalfNormal(self.noise_scale))
        numpyro.sample("y", dist.Normal(output, jnp.full_like(output, 1.0) * sigma), obs=y)

    def log_density(
        self, output: Float[Array, "obs out"], y: Float[Array, "obs out"], sigma: jax.Array | float
    ) -> Float[Array, " obs"]:
        """Log likelihood of each observation, summed over outputs."""
        return jnp.sum(dist.Normal(output, sigma).log_prob(y), -1)


@dataclass(frozen=True, repr=False)
class Categorical(Brief):
    """Labels of a classifier: y ~ Categorical(softmax(output)), y = 0, 1, ..., out_dim - 1.

    Examples
    --------
    >>> ob.BayesianNetwork(ob.Network(2, (4,), out_dim=3), ob.Categorical()).is_classifier
    True
    """

    def observe(self, output: Float[Array, "obs out"], y: Int[Array, " obs"] | None) -> None:
        """State the observation ``y`` in NumPyro."""
        numpyro.sample("y", dist.Categorical(logits=output), obs=y)

    def log_density(
        self, output: Float[Array, "obs out"], y: Int[Array, " obs"]
    ) -> Float[Array, " obs"]:
        """Log likelihood of each observation."""
        return dist.Categorical(logits=output).log_prob(y)


Likelihood = Gaussian | Categorical
