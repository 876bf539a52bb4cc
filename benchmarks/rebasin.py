"""Weight matching of trained networks by `ob.align` and by Git Re-Basin: `python -m benchmarks.rebasin`.

Git Re-Basin (Ainsworth, Hayase and Srinivasa 2023, algorithm 1) solves one permutation after the other, in random
order, from the networks as they are, until nothing improves. Its specification of what is permuted, written by hand, is
given to both. Networks learn scikit-learn's digits: its MLP 784-512-512-512-10 (enlarged to 28 x 28), and a residual
network of convolutions. Reported are squared distances after matching, barriers of the training loss, and seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import onebasin as ob

from .alignment import weight_matching

Params = dict[str, Any]
Spec = dict[str, dict[str, int]]
"""By permutation: the axis of every array that it moves."""
WIDTHS = (784, 512, 512, 512, 10)
CHANNELS, BLOCKS = 24, 3


def mlp_spec() -> Spec:
    """Each hidden layer by its incoming weights, bias and outgoing weights."""
    return {f"P{k}": {f"W{k}": 1, f"b{k}": 0, f"W{k + 1}": 0} for k in range(1, len(WIDTHS) - 1)}


def mlp_start(key: jax.Array) -> Params:
    """He initialisation."""
    out = {}
    for k, (i, o) in enumerate(pairwise(WIDTHS), 1):
        out |= {
            f"W{k}": jax.random.normal(jax.random.fold_in(key, k), (i, o)) * np.sqrt(2 / i),
            f"b{k}": jnp.zeros(o),
        }
    return out


def mlp(p: Params, x: jax.Array) -> jax.Array:
    """Logits (obs, class)."""
    h = x.reshape(len(x), -1)
    for k in range(1, len(WIDTHS)):
        h = h @ p[f"W{k}"] + p[f"b{k}"]
        h = jax.nn.relu(h) if k < len(WIDTHS) - 1 else h
    return h


def resnet_spec() -> Spec:
    """A stream of channels through every block, and the inner channels of each."""
    stream = {"stem": 3, "head": 0}
    inner = {}
    for k in range(BLOCKS):
        stream |= {f"scale{k}": 0, f"shift{k}": 0, f"up{k}": 2, f"down{k}": 3, f"out{k}": 0}
        inner[f"I{k}"] = {f"up{k}": 3, f"bias{k}": 0, f"down{k}": 2}
    return {"stream": stream, **inner}


def resnet_start(key: jax.Array) -> Params:
    """He initialisation; residual branches begin small."""
    c, keys = CHANNELS, iter(jax.random.split(key, 2 + 2 * BLOCKS))
    out = {"stem": jax.random.normal(next(keys), (3, 3, 1, c)) / 3, "last": jnp.zeros(10)}
    for k in range(BLOCKS):
        up, down = (
            jax.random.normal(next(keys), (3, 3, c, c)) * np.sqrt(2 / (9 * c)) for _ in range(2)
        )
        out |= {
            f"up{k}": up,
            f"down{k}": 0.3 * down,
            f"bias{k}": jnp.zeros(c),
            f"out{k}": jnp.zeros(c),
        }
        out |= {f"scale{k}": jnp.ones(c), f"shift{k}": jnp.zeros(c)}
    return {**out, "head": jax.random.normal(next(keys), (c, 10)) / np.sqrt(c)}


def resnet(p: Params, x: jax.Array) -> jax.Array:
    """Logits (obs, class)."""
    conv = partial(
        jax.lax.conv_general_dilated, padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    h = conv(x[:, 3:26:3, 3:26:3, None], p["stem"], (1, 1))
    for k in range(BLOCKS):
        norm = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
        inner = conv(norm * p[f"scale{k}"] + p[f"shift{k}"], p[f"up{k}"], (1, 1))
        inner = jax.nn.relu(inner + p[f"bias{k}"])
        h = h + conv(inner, p[f"down{k}"], (1, 1)) + p[f"out{k}"]
    return h.mean((1, 2)) @ p["head"] + p["last"]


def loss_of(apply: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Mean cross entropy of data."""
    entropy = optax.softmax_cross_entropy_with_integer_labels
    return jax.jit(lambda p, x, y: entropy(apply(p, x), y).mean())


def trained(
    apply: Callable[..., jax.Array],
    params: Params,
    x: jax.Array,
    y: jax.Array,
    steps: int,
    seed: int,
) -> Params:
    """Train by Adam on batches of 100."""
    adam, loss = optax.adam(1e-3), loss_of(apply)

    @jax.jit  # and no scan, in which convolutions are slow on a CPU
    def step(params: Params, state: Any, rows: jax.Array) -> tuple[Params, Any]:
        change, state = adam.update(jax.grad(loss)(params, x[rows], y[rows]), state)
        return optax.apply_updates(params, change), state

    state = adam.init(params)
    for rows in jax.random.randint(jax.random.key(seed), (steps, 100), 0, len(x)):
        params, state = step(params, state, rows)
    return params


def digits() -> tuple[jax.Array, jax.Array]:
    """Images (obs, 28, 28) in [0, 1], and their labels."""
    found = load_digits()
    large = np.pad(np.kron(found.images, np.ones((1, 3, 3))), ((0, 0), (2, 2), (2, 2)))
    return jnp.asarray(large / 16, jnp.float32), jnp.asarray(found.target)


def compare(
    name: str, spec: Spec, start: Callable[..., Params], apply: Callable[..., jax.Array], steps: int
) -> None:
    """Train two networks, match them both ways, and print a line each."""
    x, y = digits()
    a, b = (
        {
            n: np.asarray(v)
            for n, v in trained(apply, start(jax.random.key(s)), x, y, steps, s).items()
        }
        for s in (0, 1)
    )
    loss = partial(loss_of(apply), x=x, y=y)
    print(
        f"{name}: {sum(v.size for v in a.values()):,} parameters; losses {loss(a):.4f} and {loss(b):.4f}"
    )

    def report(how: str, moved: Params, seconds: float) -> None:
        apart = sum(float(np.square(a[n] - moved[n]).sum()) for n in a)
        line = [
            float(loss({n: (1 - t) * a[n] + t * moved[n] for n in a}))
            for t in np.linspace(0, 1, 11)
        ]
        height = max(
            v - (1 - t) * line[0] - t * line[-1]
            for t, v in zip(np.linspace(0, 1, 11), line, strict=True)
        )
        print(
            f"  {how:34s} squared distance {apart:10.2f}   barrier {height:7.4f}   {seconds:6.2f} s",
            flush=True,
        )

    report("as sampled", b, 0.0)
    blocks = tuple(ob.Exchangeable(own) for own in spec.values())
    for seed in range(3):
        begun = time.perf_counter()
        moved = weight_matching(blocks, a, b, np.random.default_rng(seed))
        report(f"Git Re-Basin, order {seed}", moved, time.perf_counter() - begun)
    for restarts in (1, 5):
        begun = time.perf_counter()
        aligned = ob.align({"a": a, "b": b}, blocks, reference="a", restarts=restarts)
        report(f"ob.align, restarts={restarts}", aligned.networks["b"], time.perf_counter() - begun)


def main() -> None:
    """Run both networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300, help="of training")
    parser.add_argument("--only", choices=("mlp", "resnet"), help="one of the networks")
    options = parser.parse_args()
    if options.only != "resnet":
        compare("MLP 784-512-512-512-10", mlp_spec(), mlp_start, mlp, options.steps)
    if options.only != "mlp":
        compare("residual network", resnet_spec(), resnet_start, resnet, options.steps)


if __name__ == "__main__":
    main()
