"""Bayesian networks in NumPyro: a network with a likelihood, a prior and a parametrisation.

The log density is over constrained values; NumPyro adds the log Jacobian of the parametrisation's chart in the
unconstrained space. Predictions are the network's outputs over posterior draws.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import xarray as xr
from jaxtyping import Array, Float

from onebasin.base.card import Brief, Card, FactList, Words, page
from onebasin.base.checks import (
    check_class,
    check_count,
    check_inputs,
    check_labels,
    check_outputs,
    checks_arguments,
)
from onebasin.base.errors import ArgumentError
from onebasin.base.text import parse_json

from ..symmetry.blocks import Block, Exchangeable, Rescalable, Symmetry, copies, in_words
from ..target import Named, Target
from .architecture import Network
from .likelihood import Categorical, Gaussian, Likelihood
from .parametrisation import NormalPrior, Parametrisation

Weights = Mapping[str, jax.Array]
_LIKELIHOODS: dict[str, type[Gaussian] | type[Categorical]] = {
    "Gaussian": Gaussian,
    "Categorical": Categorical,
}


@dataclass(frozen=True, repr=False)
class BayesianNetwork(Brief):
    """A network whose weights are inferred.

    Parameters
    ----------
    network : Network
        Architecture, with an output for each column of the targets; the likelihood sets the number of heads.
    likelihood : Gaussian or Categorical
        Distribution of the data given the outputs.
    prior : NormalPrior
        Prior of weights and biases.
    parametrisation : Parametrisation
        Constraints and coordinates of the hidden layers.

    Raises
    ------
    ValueError
        If the arguments do not fit each other (`Parametrisation.check`), such as a wrong number of per-layer scales, a
        classifier with one output, or predicted noise without weights in the last layer.

    Examples
    --------
    >>> model = ob.networks.BayesianNetwork(ob.networks.Network(1, (2,)), ob.networks.Gaussian(noise_sd=0.1))
    >>> [type(block).__name__ for block in model.symmetry]
    ['Exchangeable', 'Rescalable']
    >>> model.condition(x, np.sin(x)).y.shape
    (20, 1)
    """

    network: Network
    likelihood: Likelihood = field(default_factory=Gaussian)
    prior: NormalPrior = field(default_factory=NormalPrior)
    parametrisation: Parametrisation = field(default_factory=Parametrisation)

    def __post_init__(self) -> None:
        """Check the parts and their combination."""
        for part, kind, calls in (
            ("network", Network, "Network(in_dim, hidden)"),
            ("likelihood", Gaussian | Categorical, "Gaussian() or Categorical()"),
            ("prior", NormalPrior, "NormalPrior()"),
            ("parametrisation", Parametrisation, "Parametrisation()"),
        ):
            check_class(part, getattr(self, part), kind, remedy=f"give {calls}")
        heads = self.likelihood.heads
        if heads > 1 and self.network.readout == "sum":
            raise ArgumentError(
                "`noise_sd` is 'predicted', but a network with readout='sum' has no weights that could predict the "
                "noise. Use readout='linear', or noise_sd=None."
            )
        object.__setattr__(self, "network", replace(self.network, heads=heads))
        self.parametrisation.check(self.network)
        self.prior.weight_scales(len(self.network.layers))
        self.prior.bias_scales(len(self.network.layers))
        if self.is_classifier and self.network.out_dim < 2:
            raise ArgumentError(
                "`out_dim` is 1, but a categorical likelihood needs one output per class. Set `out_dim` to at least 2."
            )

    @property
    def is_classifier(self) -> bool:
        """True if targets are class labels."""
        return isinstance(self.likelihood, Categorical)

    @property
    def infers_noise(self) -> bool:
        """True if ``sigma`` is a parameter."""
        return isinstance(self.likelihood, Gaussian) and self.likelihood.noise_sd is None

    @property
    def predicts_noise(self) -> bool:
        """True if the noise's standard deviation is an output of the network."""
        return self.likelihood.heads > 1

    @property
    def symmetry(self) -> Symmetry:
        """Blocks of every hidden layer that the architecture and the parametrisation allow.

        Ordered biases leave no `Exchangeable` block. With an odd activation one symmetry remains, flipping a unit's
        signs and sorting the layer again, but its permutation depends on the draw, so it is not a block.
        """
        if self.network.skip is not None:
            return ()
        blocks: list[Block] = []
        f = self.network.nonlinearity
        for layer, following in pairwise(self.network.layers):
            incoming = {n: a for n, a in ((layer.weight, 1), (layer.bias, 0)) if n}
            outgoing = {following.weight: 0} if following.weight else {}
            if self.parametrisation.biases == "free":
                flips = f.odd and bool(outgoing)
                blocks.append(Exchangeable({**incoming, **outgoing}, flips=flips))
            if f.positively_homogeneous and not self.parametrisation.unit_norm and outgoing:
                blocks.append(Rescalable(incoming, outgoing))
        return tuple(blocks)

    def numpyro_model(self, x: Float[Array, "obs in"], y: Array | None = None) -> None:
        """Define the model in NumPyro: sites ``W1``, ``b1``, ..., ``sigma`` and the data ``y``.

        Parameters
        ----------
        x : array (obs, in)
            Inputs.
        y : array (obs, out) or (obs,), optional
            Targets; without them ``y`` is drawn.
        """
        weights: dict[str, jax.Array] = {}
        layers = self.network.layers
        depth = len(layers)
        scales = zip(self.prior.weight_scales(depth), self.prior.bias_scales(depth), strict=True)
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
            Targets; (obs,) means (obs, 1) for regression, and labels 0, 1, ... for classification.
        name : str
            Name of the target.

        Returns
        -------
        NetworkTarget
            A target with the definitions of both engines and copies of the data.

        Raises
        ------
        ValueError
            If a value is not finite, a shape does not fit the network, or a label is out of range.
        """
        x = check_inputs(x, self.network.in_dim)
        check = check_labels if self.is_classifier else check_outputs
        y = check(y, len(x), self.network.out_dim)

        heads = {}  # Labels of the outputs of two heads.
        if self.predicts_noise:
            outputs = range(self.network.out_dim)
            places = [""] if len(outputs) == 1 else [f"[{place}]" for place in outputs]
            heads["head"] = [f"{head}{place}" for head in ("mean", "noise") for place in places]

        def model() -> None:
            # Converted here, for the precision of the caller's context.
            self.numpyro_model(jnp.asarray(x), jnp.asarray(y))

        return NetworkTarget(
            name=name,
            numpyro_model=model,
            symmetry=self.symmetry,
            dims=self.network.dims,
            coords=heads,
            model=self,
            x=x,
            y=y,
        )

    def _repr_html_(self) -> str:
        lead = "A network whose weights are inferred; `.condition(x, y)` makes a target."
        facts = FactList.of(*_facts(self))
        return page(Card(f"Bayesian network {in_layers(self.network)}", (Words(lead), facts)))

    def describe(self) -> str:
        """JSON text from which `from_description` rebuilds the network."""
        network = asdict(self.network)
        del network["heads"]  # Set by the likelihood.
        return json.dumps(
            {
                "network": network,
                "likelihood": {"kind": type(self.likelihood).__name__, **asdict(self.likelihood)},
                "prior": asdict(self.prior),
                "parametrisation": asdict(self.parametrisation),
            }
        )

    @classmethod
    def from_description(cls, text: str) -> BayesianNetwork:
        """Rebuild a network from `describe`'s JSON.

        Parameters
        ----------
        text : str
            The JSON.

        Returns
        -------
        BayesianNetwork
            A network equal to the one described.

        Raises
        ------
        ValueError
            If the text does not describe a network.
        """
        try:
            parts: dict[str, dict[str, Any]] = {
                part: {n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()}
                for part, fields in parse_json(text).items()
            }
            kind = _LIKELIHOODS[parts["likelihood"].pop("kind")]
            if "noise" in parts["likelihood"]:  # Its name in older files.
                parts["likelihood"]["noise_sd"] = parts["likelihood"].pop("noise")
            return cls(
                network=Network(**parts["network"]),
                likelihood=kind(**parts["likelihood"]),
                prior=NormalPrior(**parts["prior"]),
                parametrisation=Parametrisation(**parts["parametrisation"]),
            )
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise ArgumentError(
                f"`description` must be the JSON text that `describe` returns; got {str(text)[:120]!r}."
            ) from error


@dataclass(frozen=True, kw_only=True, repr=False)
class NetworkTarget(Target):
    """A Bayesian network conditioned on `x` and `y`, for both engines.

    Attributes
    ----------
    name, numpyro_model, stan_program, symmetry, dims, coords : Any
        As in `ob.Target`; the symmetry is that of the architecture.
    model : BayesianNetwork
        The network with its likelihood, prior and parametrisation.
    x : array (obs, in)
        Inputs, float64.
    y : array (obs, out) or (obs,)
        Targets: float64 for regression, integer labels for classification.
    """

    is_network = True

    model: BayesianNetwork
    x: np.ndarray
    y: np.ndarray

    @property
    def engines(self) -> tuple[str, ...]:
        """Both."""
        return ("numpyro", "stan")

    def describe(self) -> str:
        """JSON of the network."""
        return self.model.describe()

    def _definition(self) -> str:
        return f"network {in_layers(self.model.network)}"

    def _facts(self) -> tuple[tuple[str, str], ...]:
        return _facts(self.model)

    @property
    def inputs(self) -> dict[str, Named]:
        """`x` with its axes."""
        return {"x": (("obs", "in"), self.x)}

    @property
    def outputs(self) -> dict[str, Named]:
        """`y` with its axes."""
        return {"y": (("obs", "out")[: self.y.ndim], self.y)}


def in_layers(network: Network) -> str:
    """Name the units of every layer and the activation, as in ``2-10-1 (tanh)``."""
    skip = ", with skips" if network.skip else ""
    heads = ", means and noise" if network.heads > 1 else ""
    return f"{'-'.join(map(str, network.widths))} ({network.activation}{skip}{heads})"


def _facts(model: BayesianNetwork) -> tuple[tuple[str, str], ...]:
    shapes, given = model.network.shapes, model.parametrisation.label
    count = sum(math.prod(shape) for shape in shapes.values()) + model.infers_noise
    undivided = "none that permutes or rescales units"
    names = [*shapes, *(["sigma"] if model.infers_noise else [])]
    weight_sd, bias_sd = (
        ", ".join(f"{v:g}" for v in np.ravel(scale))
        for scale in (model.prior.weight_scale, model.prior.bias_scale)
    )
    biases = f"; biases sd {bias_sd}" if model.network.biases else ""
    return (
        ("parameters", f"{count:,}: {', '.join(f'`{name}`' for name in names)}"),
        ("likelihood", _likelihood(model)),
        ("prior", f"weights normal, sd {weight_sd}{biases}"),
        ("parametrisation", "" if given == "free" else given),
        ("symmetry", in_words(model.symmetry) or undivided),
        ("copies", copies(model.symmetry, shapes)),
    )


def _likelihood(model: BayesianNetwork) -> str:
    if model.is_classifier:
        return f"categorical, {model.network.out_dim} classes"
    noise = getattr(model.likelihood, "noise_sd", None)
    scale = getattr(model.likelihood, "noise_scale", 1.0)
    if model.predicts_noise:
        times = "" if scale == 1 else f"{scale:g} times "
        return f"normal; its standard deviation is predicted too, {times}the softplus of the second head"
    if noise is not None:
        return f"normal with known standard deviation {noise:g}"
    return f"normal; `sigma` is inferred, half-normal of scale {scale:g}"


@checks_arguments
def predict(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> Float[np.ndarray, "chain draw obs out"]:
    """Evaluate the network for all draws.

    Parameters
    ----------
    model : BayesianNetwork
        The model of the draws.
    draws : DataTree, Dataset, or mapping of str to array
        A posterior, its group `posterior`, or its arrays: ``W1 (chain, draw, in, hidden1)``,
        ``b1 (chain, draw, hidden1)``, ...
    x : array (obs, in)
        Inputs, in the units that the model was conditioned on.
    batch_size : int
        Draws that are evaluated at a time; limits the memory.

    Returns
    -------
    array (chain, draw, obs, out)
        Outputs: means for regression, in the units of `y`; logits for classification. Without observation noise;
        `predict_with_noise` also returns its size.

    Raises
    ------
    ValueError
        If `x` does not fit the network or is not finite, `draws` lack a parameter or have other
        shapes, or `batch_size` is not a positive whole number.

    Examples
    --------
    >>> ob.networks.predict(network.model, weights, np.zeros((5, 1))).shape
    (4, 300, 5, 1)
    """
    check_class("model", model, BayesianNetwork, remedy="give a BayesianNetwork")
    out = all_heads(model.network, draws, x, batch_size=batch_size)
    return out[..., : model.network.out_dim]


@checks_arguments
def predict_with_noise(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> tuple[Float[np.ndarray, "chain draw obs out"], Float[np.ndarray, "chain draw obs out"]]:
    """Return the mean and standard deviation of the normal that each draw predicts at each input.

    Parameters
    ----------
    model : BayesianNetwork
        The model of the draws, with a `Gaussian` likelihood.
    draws, x, batch_size : Any
        Same as in `predict`; if the noise is inferred, the draws include ``sigma``.

    Returns
    -------
    tuple of array (chain, draw, obs, out)
        The result of `predict`, and the standard deviation of the noise around it, in the units of `y`: depending on
        the likelihood the known number, the draw's ``sigma``, or the network's prediction.

    Raises
    ------
    ValueError
        As `predict`; or if the model is a classifier, or `draws` lack the ``sigma`` that it infers.

    Examples
    --------
    >>> mean, sd = ob.networks.predict_with_noise(network.model, weights, np.zeros((5, 1)))
    >>> mean.shape == sd.shape == (4, 300, 5, 1)
    True
    """
    check_class("model", model, BayesianNetwork, remedy="give a BayesianNetwork")
    mean, sd = mean_and_sd(model, draws, x, batch_size=batch_size)
    return mean, np.broadcast_to(sd, mean.shape)


def mean_and_sd(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """As `predict_with_noise`, with standard deviations that broadcast to the means."""
    likelihood = model.likelihood
    if not isinstance(likelihood, Gaussian):
        raise ArgumentError(
            "`model` is a classifier, so its predictions have no noise. Use `predict`."
        )
    output = all_heads(model.network, draws, x, batch_size=batch_size)
    if model.predicts_noise:
        return tuple(map(np.asarray, _split(likelihood, output)))  # type: ignore[return-value]
    if not model.infers_noise:
        return output, np.full((*output.shape[:2], 1, 1), likelihood.noise_sd)
    given = _posterior_of(draws)
    if "sigma" not in given:
        raise ArgumentError(
            f"The network infers its noise, so `draws` must contain sigma; got {', '.join(map(str, given))}. Give "
            "draws of all parameters."
        )
    return output, np.asarray(given["sigma"])[..., None, None]


def all_heads(
    network: Network, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> Float[np.ndarray, "chain draw obs head"]:
    """Return the network's raw outputs: `predict` without splitting the heads, under the same checks."""
    check_count("batch_size", batch_size)
    x = check_inputs(x, network.in_dim)
    given = _posterior_of(draws)
    absent = [name for name in network.shapes if name not in given]
    if absent:
        raise ArgumentError(
            f"`draws` must contain {', '.join(absent)}; got {', '.join(map(str, given)) or 'no variables'}. Give "
            "draws of this network's parameters."
        )
    arrays = {name: np.asarray(given[name]) for name in network.shapes}
    leading = next(iter(arrays.values())).shape[:2]
    for name, shape in network.shapes.items():
        if len(leading) != 2 or arrays[name].shape != (*leading, *shape):
            raise ArgumentError(
                f"The array {name} in `draws` has shape {arrays[name].shape}, but the network needs shape "
                f"({', '.join(['chain', 'draw', *map(str, shape)])}). All arrays must have the same numbers of "
                "chains and draws."
            )
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in arrays.items()}
    out = _predict(network, flat, x, batch_size)
    return np.asarray(out).reshape(*leading, *out.shape[1:])


_split = jax.jit(Gaussian.mean_and_sd, static_argnums=0)


@partial(jax.jit, static_argnames=("network", "batch_size"))
def _predict(network: Network, weights: Weights, x: jax.Array, batch_size: int) -> jax.Array:
    return jax.lax.map(lambda w: network.apply(w, x), weights, batch_size=batch_size)


def _posterior_of(draws: Mapping[str, Any]) -> Any:
    whole = isinstance(draws, xr.DataTree) and "posterior" in draws.children
    return draws["posterior"].to_dataset() if whole else draws
