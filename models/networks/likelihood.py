"""Likelihoods of a network's outputs: Gaussian regression and categorical classification."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpyro
from jaxtyping import Array, Float, Int
from numpyro import distributions as dist

from onebasin.base.card import Brief
from onebasin.base.checks import check_positive
from onebasin.base.errors import ArgumentError

PREDICTED = "predicted"  # The word for noise whose standard deviation is an output of the network.


@dataclass(frozen=True, repr=False)
class Gaussian(Brief):
    """Targets of a regression: y ~ N(mean, sd^2), independently for every output.

    Parameters
    ----------
    noise_sd : float, None or "predicted"
        The noise's standard deviation: a known number in the units of `y`; `None` to infer one for all inputs,
        ``sigma``; ``"predicted"`` to have the network predict it at every input. Its last layer then has a second
        head, and the standard deviation is ``noise_scale * softplus(second head)``.
    noise_scale : float
        Scale of the half-normal prior on ``sigma``, or of the predicted noise, in the units of `y`; unused if
        `noise_sd` is a number.

    Raises
    ------
    ValueError
        If a number is not positive and finite, or `noise_sd` is another string.

    References
    ----------
    Nix and Weigend 1994, Estimating the mean and variance of the target probability distribution, IEEE ICNN (predicted
    noise).

    Examples
    --------
    >>> ob.networks.BayesianNetwork(ob.networks.Network(2, (4,)), ob.networks.Gaussian(noise_scale=0.5)).infers_noise
    True
    >>> model = ob.networks.BayesianNetwork(ob.networks.Network(2, (4,)), ob.networks.Gaussian(noise_sd="predicted"))
    >>> model.network.shapes["W2"]
    (4, 2)
    """

    noise_sd: float | Literal["predicted"] | None = None
    noise_scale: float = 1.0

    def __post_init__(self) -> None:
        """Check both, and turn them into Python's numbers for JSON."""
        check_positive("noise_scale", self.noise_scale)
        object.__setattr__(self, "noise_scale", float(self.noise_scale))
        if isinstance(self.noise_sd, str):
            if self.noise_sd != PREDICTED:
                raise ArgumentError(
                    f"`noise_sd` must be a positive number, None to infer the noise, or {PREDICTED!r}; got "
                    f"{self.noise_sd!r}."
                )
        elif self.noise_sd is not None:
            check_positive("noise_sd", self.noise_sd)
            object.__setattr__(self, "noise_sd", float(self.noise_sd))

    @property
    def heads(self) -> int:
        """Numbers that the network returns per output."""
        return 2 if self.noise_sd == PREDICTED else 1

    def observe(self, output: Float[Array, "obs head"], y: Float[Array, "obs out"] | None) -> None:
        """Define the noise's prior and the observation ``y`` in NumPyro; `output` has all heads."""
        sigma = None
        if self.noise_sd is None:
            sigma = numpyro.sample("sigma", dist.HalfNormal(self.noise_scale))
        mean, sd = self.mean_and_sd(output, sigma)
        numpyro.sample("y", dist.Normal(mean, jnp.full_like(mean, 1.0) * sd), obs=y)

    def mean_and_sd(
        self, output: Float[Array, "*draw obs head"], sigma: jax.Array | float | None = None
    ) -> tuple[jax.Array, jax.Array | float]:
        """Return mean (..., obs, out) and standard deviation (broadcastable to it) of every target.

        `output` is the network's (..., obs, out) for all heads. `sigma` broadcasts to the means if it is inferred;
        otherwise it is unused.
        """
        if self.noise_sd == PREDICTED:
            mean, raw = jnp.split(output, 2, axis=-1)
            return mean, self.noise_scale * jax.nn.softplus(raw)
        if isinstance(self.noise_sd, float):
            return output, self.noise_sd
        if sigma is None:
            raise ArgumentError(
                "`sigma` is missing, but this likelihood infers the noise. Give the noise sd as `sigma`."
            )
        return output, sigma

    def log_density(
        self,
        output: Float[Array, "obs head"],
        y: Float[Array, "obs out"],
        sigma: jax.Array | float | None = None,
    ) -> Float[Array, " obs"]:
        """Return each observation's log likelihood, summed over outputs; `output` and `sigma` as in `mean_and_sd`."""
        mean, sd = self.mean_and_sd(output, sigma)
        return jnp.sum(dist.Normal(mean, sd).log_prob(y), -1)


@dataclass(frozen=True, repr=False)
class Categorical(Brief):
    """Labels of a classifier: y ~ Categorical(softmax(output)), y = 0, 1, ..., out_dim - 1.

    Examples
    --------
    >>> ob.networks.BayesianNetwork(ob.networks.Network(2, (4,), out_dim=3), ob.networks.Categorical()).is_classifier
    True
    """

    heads = 1

    def observe(self, output: Float[Array, "obs out"], y: Int[Array, " obs"] | None) -> None:
        """Define the observation ``y`` in NumPyro."""
        numpyro.sample("y", dist.Categorical(logits=output), obs=y)

    def log_density(
        self, output: Float[Array, "obs out"], y: Int[Array, " obs"]
    ) -> Float[Array, " obs"]:
        """Return the log likelihood of each observation."""
        return dist.Categorical(logits=output).log_prob(y)


Likelihood = Gaussian | Categorical
