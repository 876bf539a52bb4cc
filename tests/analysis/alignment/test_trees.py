"""Networks of any architecture are aligned as trees: what they compute stays, and shuffled copies coincide."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onebasin as ob

STREAM, INNER, BLOCKS = 6, 5, 2
X = np.random.default_rng(0).normal(size=(7, 4, 4, 2)).astype(np.float32)
# A convolution into a stream of channels, residual blocks around inner ones, and a dense layer on the flattened axes.
SYMMETRY = (
    f"stem.kernel:3,stem.bias,b0.up:0,b0.down:1,b0.scale,b1.up:0,b1.down:1,b1.scale,head:0[4,4,*{STREAM}]",
    "b0.up:1,b0.bias,b0.down:0",
    "b1.up:1,b1.bias,b1.down:0",
)


def residual(seed):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1])), jnp.float32)

    def block():
        shapes = {"up": (STREAM, INNER), "bias": (INNER,), "down": (INNER, STREAM)}
        shapes["scale"] = (STREAM,)
        return {name: draw(*shape) for name, shape in shapes.items()}

    stem = {"kernel": draw(3, 3, 2, STREAM), "bias": draw(STREAM)}
    blocks = {f"b{k}": block() for k in range(BLOCKS)}
    rest = {"steps": np.array(3), "name": "net"}
    return {"stem": stem, **blocks, "head": draw(16 * STREAM, 3), **rest}


@jax.numpy_rank_promotion("allow")
def apply(p, x):
    h = jax.lax.conv_general_dilated(
        x, p["stem"]["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    h = h + p["stem"]["bias"]
    for k in range(BLOCKS):
        b = p[f"b{k}"]
        h = h + b["scale"] * (jax.nn.relu(h @ b["up"] + b["bias"]) @ b["down"])
    return h.reshape(len(x), -1) @ p["head"]


def shuffled(params, seed):
    """The same network with its channels in another order, by indexing alone."""
    rng = np.random.default_rng(seed)
    s = rng.permutation(STREAM)
    stem = params["stem"]
    out = {**params, "stem": {name: stem[name][..., s] for name in ("kernel", "bias")}}
    for k in range(BLOCKS):
        i, b = rng.permutation(INNER), params[f"b{k}"]
        up, down = b["up"][s][:, i], b["down"][i][:, s]
        out[f"b{k}"] = {"up": up, "bias": b["bias"][i], "down": down, "scale": b["scale"][s]}
    head = params["head"].reshape(16, STREAM, 3)[:, s].reshape(16 * STREAM, 3)
    return {**out, "head": head}


def leaves(tree):
    return [np.asarray(each) for each in jax.tree.leaves(tree) if not isinstance(each, str)]


def loss(p):
    return float(jnp.mean(jnp.square(apply(p, X) - 1.0)))


def test_shuffled_copies_coincide_exactly_and_keep_their_structure():
    net = residual(1)
    given = {"a": net, "b": shuffled(net, 2), "c": shuffled(net, 3)}
    found = ob.align(given, SYMMETRY, apply=apply, x=X, reference="a")
    for name, aligned in found.networks.items():
        assert jax.tree_util.tree_structure(aligned) == jax.tree_util.tree_structure(net)
        assert all(map(np.array_equal, leaves(aligned), leaves(net))), name
    assert aligned["name"] == "net" and isinstance(aligned["head"], jax.Array)
    assert (found.distance_after == 0).all() and (found.distance_before[0, 1:] > 1).all()
    (stream, first, _) = found.permutations["b"]
    assert sorted(stream.permutation) == list(range(STREAM)) and len(first.permutation) == INNER
    assert ob.networks.transpositions(found).total.shape == (1, 3)
    read = ob.align(given, apply=apply, x=X, reference="a")  # the same from the function alone
    assert (read.distance_after == 0).all()
    assert sum(bool(block.axes) for block in read.symmetry) == len(SYMMETRY)  # beside signs


def test_trained_apart_they_come_closer_and_compute_the_same():
    given = {str(seed): residual(seed) for seed in range(4)}
    found = ob.align(given, SYMMETRY, apply=apply, x=X, restarts=3)
    assert found.distance_after.mean() < found.distance_before.mean()
    for name, aligned in found.networks.items():
        np.testing.assert_allclose(apply(aligned, X), apply(given[name], X), rtol=1e-4, atol=1e-5)
    measured = ob.networks.barriers(found, loss=loss, num_points=5, pairs=6)
    assert measured.aligned.loss.shape == (6, 5)
    ends = [loss(given[name]) for name in given]
    np.testing.assert_allclose(measured.as_they_came.loss[0, [0, -1]], ends[:2], rtol=1e-5)
    np.testing.assert_allclose(measured.aligned.loss[0, [0, -1]], ends[:2], rtol=1e-4)
    some = ob.networks.barriers(found, loss=loss, num_points=2, pairs=3)
    losses = np.array([loss(given[name]) for name in given])
    np.testing.assert_allclose(some.aligned.loss, losses[some.pairs[:, :, 1]], rtol=1e-4)
    assert "nats" not in str(measured) and "networks" in str(measured)


def test_a_barrier_between_shuffled_copies_vanishes_once_they_are_aligned():
    net = residual(1)
    found = ob.align({"a": net, "b": shuffled(net, 2)}, SYMMETRY)
    measured = ob.networks.barriers(found, loss=loss, num_points=5)
    assert np.abs(measured.as_they_came.excess).max() > 1e-3
    np.testing.assert_allclose(measured.aligned.excess, 0, atol=1e-6)
    assert measured.transpositions[0] == ob.networks.transpositions(found).total[0, 1]


class Pair(NamedTuple):
    w: np.ndarray
    v: np.ndarray


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (("a",), {}, "has only one network"),
        (
            ("a", "b"),
            {"symmetry": ("stem.kernel:3,stem.bias",)},
            "does not hold: .* permutations of stem.kernel, stem.bias",
        ),
        (("a", "b"), {"symmetry": None, "apply": None}, "does not know their symmetry"),
        (("a", "b"), {"cost": "activations"}, "`cost` and `scales` apply only to posteriors"),
        (
            ("a", "b", "small"),
            {},
            r"different architectures: stem.bias has shape \(6,\) in 'a', but \(4,\) in 'small'",
        ),
        (("a", "b"), {"reference": "c"}, "choose one of draw, mean, gaussian"),
    ],
)
def test_what_cannot_be_aligned_is_refused(given, options, message):
    small = residual(0)
    small["stem"] = {"bias": jnp.zeros(4), "kernel": small["stem"]["kernel"]}
    nets = {"a": residual(1), "b": residual(2), "small": small}
    options = {"symmetry": SYMMETRY, "apply": apply, "x": X, **options}
    with pytest.raises(ValueError, match=message):
        ob.align({name: nets[name] for name in given}, **options)
