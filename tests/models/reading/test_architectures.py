"""Symmetries of 26 architectures: what was read is what a person wrote down, and true of the values."""

from pathlib import Path

import jax
import numpy as np
import pytest

pytest.importorskip("flax")
from onebasin.base.precision import precision
from onebasin.models.reading.read import read

from .architectures import ARCHITECTURES, told
from .programs import permuted, signed

RIGHT = dict(
    part.split("\n", 1)
    for part in (Path(__file__).parent / "architectures.txt").read_text().strip().split("\n\n")
)


@pytest.fixture
def double():
    with precision("float64"):
        yield


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_symmetries_of_an_architecture_are_read(name, double):
    made = ARCHITECTURES[name]()
    found = read(made.function, made.shapes)
    assert found.unknown == ()
    assert told(found, made.shapes) == RIGHT[name]
    rng = np.random.default_rng(0)
    values = {n: rng.normal(size=shape) for n, shape in made.shapes.items()}
    total = jax.jit(lambda v: sum(made.function(v).values()))
    here = float(total(values))
    for each in found.classes:
        moved = permuted(values, each.places, rng.permutation(each.size))
        for own in each.signs:
            moved = signed(moved, own, rng.choice([-1.0, 1.0], size=each.size))
        assert float(total(moved)) == pytest.approx(here, rel=1e-10)
    for own in found.flips:
        values = {n: -v if n in own else v for n, v in values.items()}
        assert float(total(values)) == pytest.approx(here, rel=1e-10)


def equinox_layers():
    eqx = pytest.importorskip("equinox")
    key = jax.random.key(0)
    rows, image, series = np.ones(6), np.ones((4, 8, 8)), np.ones((5, 6))
    nn = eqx.nn
    return {
        "MLP": (nn.MLP(6, 2, 5, 2, key=key), rows),
        "Conv2d": (nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, key=key), image),
        "ConvTranspose2d": (nn.ConvTranspose2d(4, 6, 3, key=key), image),
        "MaxPool2d": (nn.MaxPool2d(2), image),
        "AvgPool2d": (nn.AvgPool2d(2), image),
        "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d(2), image),
        "LayerNorm": (nn.LayerNorm(6), rows),
        "GroupNorm": (nn.GroupNorm(2, 4), image),
        "RMSNorm": (nn.RMSNorm(6), rows),
        "PReLU": (nn.PReLU(0.2), rows),
        "GRUCell": (nn.GRUCell(6, 4, key=key), rows),
        "LSTMCell": (nn.LSTMCell(6, 4, key=key), rows),
        "MultiheadAttention": (nn.MultiheadAttention(2, 6, key=key), series),
        "Embedding": (nn.Embedding(7, 4, key=key), np.array(3)),
        "WeightNorm": (nn.WeightNorm(nn.Linear(6, 4, key=key)), rows),
        "RotaryPositionalEmbedding": (nn.RotaryPositionalEmbedding(6), series),
    }


def test_every_operation_of_equinoxs_layers_is_understood():
    import equinox as eqx

    unknown = {}
    for name, (layer, x) in equinox_layers().items():
        arrays, rest = eqx.partition(layer, eqx.is_inexact_array)
        leaves, structure = jax.tree.flatten(arrays)
        named = {f"p{at}": leaf for at, leaf in enumerate(leaves)}

        def apply(values, x, structure=structure, rest=rest, named=named, name=name):
            values = [values[n].astype(named[n].dtype) for n in named]
            layer = eqx.combine(jax.tree.unflatten(structure, values), rest)
            if name == "GRUCell":
                return layer(x, np.zeros(4))
            if name == "LSTMCell":
                return layer(x, (np.zeros(4), np.zeros(4)))
            return layer(x, x, x) if name == "MultiheadAttention" else layer(x)

        with jax.numpy_rank_promotion("allow"):
            found = read(apply, {n: v.shape for n, v in named.items()}, (x,))
        unknown |= {name: found.unknown} if found.unknown else {}
    assert unknown == {}
