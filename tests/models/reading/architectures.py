"""Small Flax networks of 26 architectures; `architectures.txt` has the correct answer for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from onebasin.models.reading.read import ReadSymmetry, place_of
from onebasin.models.symmetry.block import AxisPart

RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=(6, 5))
IMAGES = RNG.normal(size=(3, 8, 8, 3))
SERIES = RNG.normal(size=(3, 4, 5))
TOKENS = RNG.integers(0, 7, size=(6, 4))
GRAPH = (RNG.uniform(size=(6, 6)) < 0.5).astype(float)
WAVES = RNG.normal(size=(5, 8))


class Stated(nn.Module):
    """A Flax network defined by a function."""

    function: Callable[[Any], Any]

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        return self.function(x)


@dataclass(frozen=True)
class Architecture:
    """A function of named arrays, with their shapes."""

    function: Callable[[dict[str, Any]], dict[str, Any]]
    shapes: dict[str, tuple[int, ...]]


ARCHITECTURES: dict[str, Callable[[], Architecture]] = {}


def architecture(name: str, x: np.ndarray) -> Any:
    """Register the decorated function as a network with this name, normal priors and a normal likelihood."""

    def keep(function: Callable[[Any], Any]) -> None:
        def make() -> Architecture:
            module = Stated(function)
            tree = jax.eval_shape(lambda: module.init(jax.random.key(0), x))
            shapes = {n: v.shape for n, v in flatten_dict(tree["params"], sep=".").items()}
            rest = {
                k: jax.tree.map(lambda v: np.ones(v.shape), tree[k]) for k in tree if k != "params"
            }

            def apply(values: dict[str, Any]) -> Any:
                params = unflatten_dict(values, sep=".")
                return module.apply({"params": params, **rest}, x)

            like = jax.eval_shape(apply, {n: jnp.zeros(s) for n, s in shapes.items()})
            y = np.random.default_rng(0).normal(size=like.shape)

            def terms(values: dict[str, Any]) -> dict[str, Any]:
                own = {name: -0.5 * jnp.sum(v**2) for name, v in values.items()}
                return {**own, "y": -0.5 * jnp.sum((apply(values) - y) ** 2)}

            return Architecture(terms, shapes)

        ARCHITECTURES[name] = make

    return keep


@architecture("perceptron", ROWS)
def _(x):
    return nn.Dense(2)(nn.relu(nn.Dense(4)(x)))


@architecture("deep perceptron", ROWS)
def _(x):
    return nn.Dense(2)(jnp.tanh(nn.Dense(3)(jnp.tanh(nn.Dense(4)(x)))))


@architecture("convolutions with strides and padding", IMAGES)
def _(x):
    x = nn.relu(nn.Conv(4, (3, 3), strides=2)(x))
    x = nn.relu(nn.Conv(6, (3, 3), padding="VALID")(x))
    return nn.Dense(2)(x.reshape(len(x), -1))


@architecture("pooling", IMAGES)
def _(x):
    x = nn.max_pool(nn.relu(nn.Conv(4, (3, 3))(x)), (2, 2), (2, 2))
    x = nn.avg_pool(nn.relu(nn.Conv(3, (1, 1))(x)), (2, 2), (2, 2))
    return nn.Dense(2)(x.mean((1, 2)))


@architecture("batch norm", ROWS)
def _(x):
    return nn.Dense(2)(nn.relu(nn.BatchNorm(use_running_average=True)(nn.Dense(4)(x))))


@architecture("layer norm", ROWS)
def _(x):
    return nn.Dense(2)(nn.relu(nn.LayerNorm()(nn.Dense(4)(x))))


@architecture("group norm", ROWS)
def _(x):
    return nn.Dense(2)(nn.relu(nn.GroupNorm(num_groups=2)(nn.Dense(6)(x))))


@architecture("root mean square norm", ROWS)
def _(x):
    return nn.Dense(2)(nn.relu(nn.RMSNorm()(nn.Dense(4)(x))))


@architecture("residual", ROWS)
def _(x):
    x = nn.Dense(4)(x)
    for _ in range(2):
        x = x + nn.Dense(4)(nn.relu(nn.Dense(3)(x)))
    return nn.Dense(2)(x)


@architecture("gated", ROWS)
def _(x):
    gate, value = jnp.split(nn.Dense(8)(x), 2, axis=-1)
    return nn.Dense(2)(jax.nn.sigmoid(gate) * value)


@architecture("attention", SERIES)
def _(x):
    x = nn.Dense(6)(x)
    x = x + nn.MultiHeadDotProductAttention(num_heads=2, name="heads")(x)
    return nn.Dense(2)(nn.LayerNorm()(x))


@architecture("embedding", TOKENS)
def _(x):
    return nn.Dense(2)(jnp.tanh(nn.Embed(7, 4)(x).mean(1)))


@architecture("LSTM", SERIES)
def _(x):
    return nn.Dense(2)(nn.RNN(nn.OptimizedLSTMCell(3, name="cell", param_dtype=float))(x))


@architecture("GRU", SERIES)
def _(x):
    return nn.Dense(2)(nn.RNN(nn.GRUCell(3, name="cell", param_dtype=float))(x))


class Experts(nn.Module):
    """Three experts with four hidden units each, mixed by a softmax."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        normal = nn.initializers.normal()
        first = self.param("first", normal, (3, x.shape[-1], 4))
        second = self.param("second", normal, (3, 4, 2))
        gate = nn.softmax(nn.Dense(3, name="gate")(x))
        hidden = nn.relu(jnp.einsum("ni,eih->neh", x, first))
        return jnp.einsum("ne,neh,eho->no", gate, hidden, second)


@architecture("mixture of experts", ROWS)
def _(x):
    return Experts(name="experts")(x)


class Tied(nn.Module):
    """An autoencoder whose decoder is the transposed encoder."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        weight = self.param("weight", nn.initializers.normal(), (x.shape[-1], 3))
        bias = self.param("bias", nn.initializers.normal(), (3,))
        return jnp.tanh(x @ weight + bias[None]) @ weight.T


@architecture("tied autoencoder", ROWS)
def _(x):
    return Tied(name="tied")(x)


@architecture("deep sets", SERIES)
def _(x):
    each = nn.relu(nn.Dense(4)(x))
    return nn.Dense(2)(nn.relu(nn.Dense(3)(each.sum(1))))


@architecture("graph convolution", ROWS)
def _(x):
    for size in (4, 3):
        x = nn.relu(GRAPH @ nn.Dense(size)(x))
    return nn.Dense(2)(x)


@architecture("hypernetwork", ROWS)
def _(x):
    weights = nn.Dense(5 * 4)(jnp.tanh(nn.Dense(3)(x))).reshape(len(x), 5, 4)
    return nn.Dense(2)(jnp.tanh(jnp.einsum("ni,nih->nh", x, weights)))


class Products(nn.Module):
    """A neural arithmetic unit: weighted sums of logarithms."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        normal = nn.initializers.normal()
        first = self.param("first", normal, (x.shape[-1], 4))
        second = self.param("second", normal, (x.shape[-1], 4))
        weight = jnp.tanh(first) * jax.nn.sigmoid(second)
        return nn.Dense(2)(jnp.exp(jnp.log(jnp.abs(x) + 1e-3) @ weight))


@architecture("arithmetic products", ROWS)
def _(x):
    return Products(name="unit")(x)


@architecture("depthwise convolution", IMAGES)
def _(x):
    x = nn.relu(nn.Conv(4, (1, 1))(x))
    x = nn.relu(nn.Conv(8, (3, 3), feature_group_count=4)(x))
    return nn.Dense(2)(x.mean((1, 2)))


@architecture("transposed convolution", IMAGES)
def _(x):
    x = nn.relu(nn.Conv(4, (3, 3), strides=2)(x))
    return nn.Conv(2, (1, 1))(nn.relu(nn.ConvTranspose(6, (3, 3), strides=(2, 2))(x)))


@architecture("weight norm", ROWS)
def _(x):
    return nn.Dense(2)(jnp.tanh(nn.WeightNorm(nn.Dense(4))(x)))


class Spectral(nn.Module):
    """A convolution computed as a product of spectra."""

    channels: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply the convolution to an array (row, place, channel)."""
        kernel = self.param("kernel", nn.initializers.normal(), (8, x.shape[-1], self.channels))
        found = jnp.einsum("nfi,fio->nfo", jnp.fft.rfft(x, axis=1), jnp.fft.rfft(kernel, axis=0))
        return jnp.fft.irfft(found, n=8, axis=1)


@architecture("spectra", WAVES[..., None])
def _(x):
    x = jnp.tanh(Spectral(3, name="first")(x))
    return Spectral(1, name="second")(x)


@architecture("Fourier features", ROWS)
def _(x):
    angle = nn.Dense(3)(x)
    return nn.Dense(2)(jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1))


@architecture("U-Net", IMAGES)
def _(x):
    first = nn.relu(nn.Conv(2, (3, 3))(x))
    low = nn.relu(nn.Conv(4, (3, 3), strides=2)(first))
    up = nn.relu(nn.ConvTranspose(3, (3, 3), strides=(2, 2))(low))
    return nn.Conv(2, (3, 3))(jnp.concatenate([first, up], axis=-1))


def told(found: ReadSymmetry, shapes: dict[str, tuple[int, ...]]) -> str:
    """Format what was read: one line per class with its sets of signs, signs of whole arrays, and reasons by axis."""

    def word(name: str, part: AxisPart) -> str:
        place = place_of(part, shapes[name])
        return f"{name}:{place if isinstance(place, int) else place.word}"

    lines = []
    for each in found.classes:
        places = [word(name, part) for name, parts in each.places.items() for part in parts]
        signs = [" ".join(word(*place) for place in own) for own in each.signs]
        lines.append(
            " | ".join([f"{each.size}: {' '.join(places)}", *(f"+- {own}" for own in signs)])
        )
    lines += [f"+- {' '.join(own)}" for own in found.flips]
    why: dict[str, list[str]] = {}
    for (name, axis), reason in found.fixed.items():
        why.setdefault(reason.what, []).append(f"{name}:{axis}")
    return "\n".join([*lines, *(f"{what}: {' '.join(own)}" for what, own in why.items())])
