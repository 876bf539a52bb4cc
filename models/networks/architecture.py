"""Fully connected networks: their shapes and their forward pass.

Convention: row vectors, weights (in, hidden), layers in the pre-activation form of Kurle et al. 2021, equation 7,

    h_l = h_{l-1} O_l + f_l(h_{l-1}) W_l + b_l,    l = 1, ..., L + 1,   h_0 = x,

with f_1 the identity and f_2 = ... = f_{L+1} the activation; h_{L+1} is the output. Skip matrices O_l, if any, are
random with their own seed.

Two properties of an activation decide a network's symmetry: a *positively homogeneous* function satisfies
f(a z) = a f(z) for a > 0, so a unit's incoming weights may be scaled against its outgoing ones (Pourzanjani et al.
2017, definition 2.2); an *odd* one satisfies f(-z) = -f(z), so both may change sign (Kurle et al. 2021, footnote 1).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.card import Brief
from onebasin.base.checks import MOST, check_count, choose
from onebasin.base.errors import ArgumentError
from onebasin.base.machine import in_words

READOUTS = ("linear", "sum")
SKIPS = ("orthogonal",)


@dataclass(frozen=True)
class Activation:
    """An element-wise function, with its name for users and the two properties that matter for symmetry."""

    name: str
    function: Callable[[jax.Array], jax.Array]
    positively_homogeneous: bool = False
    odd: bool = False


ACTIVATIONS: dict[str, Activation] = {
    a.name: a
    for a in (
        Activation("identity", lambda z: z, positively_homogeneous=True, odd=True),
        # The derivative of jax.nn.relu takes a third of a small network's gradient; with z > 0, NaN would become 0.
        Activation("relu", lambda z: jnp.where(z <= 0, 0.0, z), positively_homogeneous=True),
        Activation(
            "leaky_relu", lambda z: jnp.where(z > 0, z, 0.01 * z), positively_homogeneous=True
        ),
        Activation("tanh", jnp.tanh, odd=True),
        Activation("selu", jax.nn.selu),
        Activation("softplus", jax.nn.softplus),
        Activation("silu", jax.nn.silu),
    )
}


def activation(name: str) -> Activation:
    """Look up an activation by name."""
    return ACTIVATIONS[choose("activation", name, ACTIVATIONS)]


@dataclass(frozen=True)
class Layer:
    """The names and sizes of one layer's parameters."""

    weight: str | None  # "W1", ..., or None without weights.
    bias: str | None  # "b1", ..., or None without biases.
    in_dim: int
    out_dim: int
    in_axis: str  # "in", "hidden1", ...
    out_axis: str  # "hidden1", ..., "out", or "head" with several heads.
    hidden: bool  # Whether the units after it are hidden.


@dataclass(frozen=True, repr=False)
class Network(Brief):
    """A fully connected network with any number of hidden layers.

    Parameters
    ----------
    in_dim, out_dim : int
        Inputs, and outputs: columns of the targets, or classes.
    hidden : tuple of int
        Units of each hidden layer, at least one layer.
    activation : str
        ``relu``, ``tanh`` or another of `models.networks.architecture.ACTIVATIONS`.
    biases : bool
        Whether the layers have biases.
    readout : {"linear", "sum"}
        The last layer: weights and a bias to infer, or the plain sum of the last hidden layer's
        activations (then `out_dim` is 1).
    skip : {None, "orthogonal"}
        Whether every layer has a fixed random semi-orthogonal skip matrix O_l.
    skip_seed : int
        Seed of the O_l.
    heads : int
        Numbers that the last layer returns per output. `BayesianNetwork` sets it by its likelihood: 2 if the noise is
        predicted, with the means of all outputs first.

    Raises
    ------
    ValueError
        If a size is not a positive whole number, a name is unknown, or ``readout="sum"`` is
        combined with skips, several outputs or several heads.

    References
    ----------
    Kurle, Januschowski, Gasthaus and Wang 2021, On symmetries in variational Bayesian neural nets (the skip matrices).

    Examples
    --------
    >>> net = ob.networks.Network(in_dim=3, hidden=(8, 4), activation="tanh")
    >>> net.shapes["W2"], net.shapes["b3"]
    ((8, 4), (1,))
    """

    in_dim: int
    hidden: tuple[int, ...]
    out_dim: int = 1
    activation: str = "relu"
    biases: bool = True
    readout: str = "linear"
    skip: str | None = None
    skip_seed: int = 0
    heads: int = 1

    def __post_init__(self) -> None:
        """Check the fields, and turn sizes into Python's numbers for JSON."""
        for name, least in (("in_dim", 1), ("out_dim", 1), ("heads", 1), ("skip_seed", 0)):
            check_count(name, getattr(self, name), least=least)
            object.__setattr__(self, name, int(getattr(self, name)))
        if not isinstance(self.hidden, tuple | list) or not self.hidden:
            raise ArgumentError(
                "`hidden` must be a tuple with the number of units of each hidden layer, such as (50,); got "
                f"{self.hidden!r}."
            )
        for size in self.hidden:
            check_count("hidden", size)
        object.__setattr__(self, "hidden", tuple(int(size) for size in self.hidden))
        if (weights := sum(a * b for a, b in pairwise(self.widths))) > MOST:
            raise ArgumentError(
                f"`hidden` is {self.hidden}, so the network would have {weights:.3g} weights "
                f"({in_words(8 * weights)} per draw). Use fewer units: at most {MOST:,} weights are supported."
            )
        activation(self.activation)
        choose("readout", self.readout, READOUTS)
        if self.skip is not None:
            choose("skip", self.skip, SKIPS)
        if self.readout == "sum" and (self.skip is not None or self.widths[-1] != 1):
            several = f", heads={self.heads}" if self.heads != 1 else ""
            raise ArgumentError(
                "`readout` is 'sum', which requires one output and no skip connections, but the network has "
                f"out_dim={self.out_dim}{several} and skip={self.skip!r}. Use readout='linear'."
            )

    @property
    def nonlinearity(self) -> Activation:
        """The activation function with its properties."""
        return activation(self.activation)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of every layer, including the inputs and the last layer's numbers."""
        return (self.in_dim, *self.hidden, self.out_dim * self.heads)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers of the forward pass, in order."""
        depth = len(self.hidden)
        last = "out" if self.heads == 1 else "head"
        axes = ("in", *(f"hidden{i + 1}" for i in range(depth)), last)
        return tuple(
            Layer(
                weight=None if (fixed := i == depth and self.readout == "sum") else f"W{i + 1}",
                bias=f"b{i + 1}" if self.biases and not fixed else None,
                in_dim=self.widths[i],
                out_dim=self.widths[i + 1],
                in_axis=axes[i],
                out_axis=axes[i + 1],
                hidden=i < depth,
            )
            for i in range(depth + 1)
        )

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Axis names of each parameter."""
        return self._by_name(lambda layer: (layer.in_axis, layer.out_axis))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter, under its name."""
        return self._by_name(lambda layer: (layer.in_dim, layer.out_dim))

    def _by_name[T](self, of_axes: Callable[[Layer], tuple[T, T]]) -> dict[str, tuple[T, ...]]:
        """Map each weight to one value per axis, and each bias to the last of these."""
        out: dict[str, tuple[T, ...]] = {}
        for layer in self.layers:
            axes = of_axes(layer)
            if layer.weight:
                out[layer.weight] = axes
            if layer.bias:
                out[layer.bias] = axes[1:]
        return out

    def skip_matrices(self) -> tuple[np.ndarray, ...]:
        """Return the random (Haar) semi-orthogonal O_l (in, out) of every layer; empty without skips."""
        if self.skip is None:
            return ()
        rng = np.random.default_rng(self.skip_seed)
        found = []
        for layer in self.layers:
            rows, columns = layer.in_dim, layer.out_dim
            tall = rng.standard_normal((max(rows, columns), min(rows, columns)))
            q, r = np.linalg.qr(tall)
            q = q * np.sign(np.diagonal(r))  # For a uniform distribution.
            found.append(q if rows >= columns else q.T)
        return tuple(found)

    def apply(
        self, weights: Mapping[str, jax.Array], x: Float[Array, "obs in"]
    ) -> Float[Array, "obs out"]:
        """Run the network on inputs (obs, in), with weights ``W1``, ``b1``, ... of the shapes in `shapes`.

        It returns outputs (obs, out), means for regression or logits for classification. With several heads there are
        ``out * heads`` numbers, all outputs of the first head first.
        """
        f = self.nonlinearity.function
        skips = self.skip_matrices()
        # Arrays are (feature, obs), which is nearly twice as fast for several networks (`vmap`). A bias is the weight
        # of an input of ones, which saves a sum over observations in the gradient.
        before = h = x.T
        for i, layer in enumerate(self.layers):
            if layer.weight is None:
                return jnp.sum(before, 0)[:, None]
            weight = weights[layer.weight]
            if layer.bias:
                ones = jnp.ones_like(before[:1])
                before = jnp.concatenate([before, ones])
                weight = jnp.concatenate([weight, weights[layer.bias][None, :]])
            after = weight.T @ before
            if skips:
                after = after + jnp.asarray(skips[i].T, x.dtype) @ h
            h, before = after, f(after)
        return h.T
