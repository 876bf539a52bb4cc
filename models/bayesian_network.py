"""Bayesian networks: a network, a likelihood, a prior and a parametrisation, and what they mean in NumPyro."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jaxtyping import Array, Float

from .likelihood import Categorical, Gaussian, Likelihood
from .network import Network
from .parametrisation import Parametrisation
from .prior import NormalPrior
from .symmetry import Block, Exchangeable, Rescalable, Symmetry
from .target import NetworkTarget

_LIKELIHOODS: dict[str, type[Gaussian] | type[Categorical]] = {
    "Gaussian": Gaussian,
    "Categorical": Categorical,
}


@dataclass(frozen=True)
class BayesianNetwork:
    """A network whose weights are inferred.

    Parameters
    ----------
    network : Network
        Architecture.
    likelihood : Gaussian or Categorical
        How data follow from outputs.
    prior : NormalPrior
        On weights and biases.
    parametrisation : Parametrisation
        Constraints and coordinates of the hidden layers.

    Raises
    ------
    ValueError
        If the parts do not fit together: see `Parametrisation.check`; per-layer scales of the wrong number; one class.
    """

    network: Network
    likelihood: Likelihood = field(default_factory=Gaussian)
    prior: NormalPrior = field(default_factory=NormalPrior)
    parametrisation: Parametrisation = field(default_factory=Parametrisation)

    def __post_init__(self) -> None:
        self.parametrisation.check(self.network)
        self.prior.weight_scales(len(self.network.layers))
        self.prior.bias_scales(len(self.network.layers))
        if self.is_classifier and self.network.out_dim < 2:
            raise ValueError(
                "`out_dim` is 1, but a categorical likelihood needs one output a class, at least 2."
            )

    @property
    def is_classifier(self) -> bool:
        """Whether targets are class labels."""
        return isinstance(self.likelihood, Categorical)

    @property
    def infers_noise(self) -> bool:
        """Whether ``sigma`` is a parameter."""
        return isinstance(self.likelihood, Gaussian) and self.likelihood.noise is None

    @property
    def symmetry(self) -> Symmetry:
        """Blocks of every hidden layer that the architecture and the parametrisation leave alive."""
        if self.network.skip is not None:
            return ()
        blocks: list[Block] = []
        layers = self.network.layers
        for layer, following in zip(layers[:-1], layers[1:], strict=True):
            incoming = {n: a for n, a in ((layer.weight, 1), (layer.bias, 0)) if n}
            outgoing = {following.weight: 0} if following.weight else {}
            blocks += self._layer_blocks(incoming, outgoing)
        return tuple(blocks)

    def _layer_blocks(self, incoming: dict[str, int], outgoing: dict[str, int]) -> list[Block]:
        blocks: list[Block] = []
        f = self.network.nonlinearity
        if self.parametrisation.biases == "free":
            flips = f.odd and bool(outgoing)
            blocks.append(Exchangeable({**incoming, **outgoing}, flips=flips))
        if f.positively_homogeneous and not self.parametrisation.unit_norm and outgoing:
            blocks.append(Rescalable(incoming, outgoing))
        return blocks

    def numpyro_model(self, x: Float[Array, "obs in"], y: Array | None = None) -> None:
        """The model as NumPyro statements: sites ``W1``, ``b1``, ..., ``sigma`` and the observation ``y``."""
        weights: dict[str, jax.Array] = {}
        layers = self.network.layers
        scales = zip(
            self.prior.weight_scales(len(layers)), self.prior.bias_scales(len(layers)), strict=True
        )
        for layer, (weight_scale, bias_scale) in zip(layers, scales, strict=True):
            if layer.weight:
                prior = self.parametrisation.weight_prior(layer, weight_scale)
                weights[layer.weight] = numpyro.sample(layer.weight, prior)
            if layer.bias:
                prior = self.parametrisation.bias_prior(layer, bias_scale)
                weights[layer.bias] = numpyro.sample(layer.bias, prior)
        self.likelihood.observe(self.network.apply(weights, x), y)

    def condition(self, x: Any, y: Any, *, name: str = "network") -> NetworkTarget:
        """Condition on data.

        Parameters
        ----------
        x : array (obs, in)
            Inputs.
        y : array (obs, out) or (obs,)
            Targets; (obs,) is taken as (obs, 1) for regression, and as labels 0, 1, ... for classification.
        name : str
            Name of the target.

        Returns
        -------
        NetworkTarget
            With both engines' definitions.

        Raises
        ------
        ValueError
            If a value is not finite, a shape does not fit the network, or a label is out of range.
        """
        x = check_inputs(x, self.network.in_dim)
        y = self._check_targets(y, len(x))

        def model() -> None:
            # Converted at call time, so that the precision is that of the caller's context.
            self.numpyro_model(jnp.asarray(x), jnp.asarray(y))

        return NetworkTarget(
            name=name,
            numpyro_model=model,
            symmetry=self.symmetry,
            dims=self.network.dims,
            model=self,
            x=x,
            y=y,
        )

    def _check_targets(self, y: Any, num_obs: int) -> np.ndarray:
        y = np.asarray(y)
        if self.is_classifier:
            return _check_labels(y, num_obs, self.network.out_dim)
        y = np.asarray(y, dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
        if y.shape != (num_obs, self.network.out_dim):
            raise ValueError(
                f"`y` has shape {y.shape}, but {num_obs} rows of `x` and {self.network.out_dim} outputs need "
                f"({num_obs}, {self.network.out_dim})."
            )
        _check_finite("y", y)
        return y

    def describe(self) -> str:
        """JSON text from which `from_description` rebuilds the network."""
        return json.dumps(
            {
                "network": asdict(self.network),
                "likelihood": {"kind": type(self.likelihood).__name__, **asdict(self.likelihood)},
                "prior": asdict(self.prior),
                "parametrisation": asdict(self.parametrisation),
            }
        )

    @classmethod
    def from_description(cls, text: str) -> BayesianNetwork:
        """Rebuild a network from `describe`'s JSON.

        Raises
        ------
        ValueError
            If the text does not describe a network.
        """
        try:
            parts = json.loads(text)
            likelihood = dict(parts["likelihood"])
            return cls(
                network=Network(**parts["network"]),
                likelihood=_LIKELIHOODS[likelihood.pop("kind")](**likelihood),
                prior=NormalPrior(**parts["prior"]),
                parametrisation=Parametrisation(**parts["parametrisation"]),
            )
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f"`description` is not the JSON of a network ({error!r}); got {text!r:.120}."
            ) from error


def check_inputs(x: Any, in_dim: int) -> np.ndarray:
    """Inputs as float64 (obs, in), or a clear error."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != in_dim:
        raise ValueError(
            f"`x` has shape {x.shape}, but the network has {in_dim} inputs: give (obs, {in_dim})."
        )
    if not len(x):
        raise ValueError("`x` has no rows; give at least one observation.")
    _check_finite("x", x)
    return x


def _check_finite(argument: str, value: np.ndarray) -> None:
    bad = np.argwhere(~np.isfinite(value))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        raise ValueError(
            f"`{argument}` has {len(bad)} value(s) that are not finite, the first in row {row}, column {column} "
            f"({value[row, column]}); remove or impute them first."
        )


def _check_labels(y: np.ndarray, num_obs: int, num_classes: int) -> np.ndarray:
    if y.shape != (num_obs,):
        raise ValueError(f"`y` has shape {y.shape}; {num_obs} labels need ({num_obs},).")
    labels = y.astype(np.int64)
    if not np.array_equal(labels, y) or labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"`y` must hold labels 0 to {num_classes - 1} (one output a class); got values from {y.min()} to {y.max()}."
        )
    return labels


@partial(jax.jit, static_argnames=("network", "batch_size"))
def _predict(
    network: Network, weights: Mapping[str, jax.Array], x: jax.Array, batch_size: int
) -> jax.Array:
    return jax.lax.map(lambda w: network.apply(w, x), weights, batch_size=batch_size)


def predict(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> Float[np.ndarray, "chain draw obs out"]:
    """Run the network over all draws.

    Parameters
    ----------
    model : BayesianNetwork
        The model that the draws are of.
    draws : mapping or Dataset
        ``W1 (chain, draw, in, hidden1)``, ...
    x : array (obs, in)
        Inputs, in the units that the model was conditioned on.
    batch_size : int
        Draws that are run at a time; bounds the memory.

    Returns
    -------
    array (chain, draw, obs, out)
        Outputs: means for regression, logits for classification. Without observation noise.
    """
    x = check_inputs(x, model.network.in_dim)
    arrays = {name: jnp.asarray(np.asarray(draws[name])) for name in model.network.shapes}
    leading = next(iter(arrays.values())).shape[:2]
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in arrays.items()}
    out = _predict(model.network, flat, jnp.asarray(x), batch_size)
    return np.asarray(out).reshape(*leading, *out.shape[1:])
