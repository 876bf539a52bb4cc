"""What alignment gives the posterior of a residual network: `python -m benchmarks.one_basin`, ten minutes on two cores.

Sixteen networks of Flax, residual ones of 10,168 weights, are trained on 1,200 of scikit-learn's digits, and eight
chains of MCLMC sample the posterior of the same network. Its program shows what is interchangeable. Reported, as they
came and aligned: R-hat of the weights, the loss on the line between two of them, and the log score of one diagonal
Gaussian on 500 other digits; next to R-hat of the predictions and the log score of the draws, which alignment does not
change.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import optax
from numpyro import distributions as dist
from numpyro.contrib.module import random_flax_module
from sklearn.datasets import load_digits

import onebasin as ob
from onebasin.analysis.summaries.summary import rhats

STREAM, INNER, BRANCHES, TRAIN = 32, 40, 3, 1200


class Residual(nn.Module):
    """A linear stem, branches with ReLU units that add to its stream, and a linear head."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Logits (obs, class) of inputs (obs, 64)."""
        h = nn.Dense(STREAM, use_bias=False, name="stem")(x)
        for k in range(BRANCHES):
            inner = nn.relu(nn.Dense(INNER, name=f"up{k}")(h))
            h = h + nn.Dense(STREAM, use_bias=False, name=f"down{k}")(inner)
        return nn.Dense(10, use_bias=False, name="head")(h)


NETWORK = Residual()
Tree = Mapping[str, Mapping[str, jax.Array]]


def logits(p: Tree, x: jax.Array) -> jax.Array:
    """Logits (obs, class)."""
    return cast(jax.Array, NETWORK.apply({"params": p}, x))


def prior(name: str, shape: tuple[int, ...]) -> dist.Distribution:
    """A normal prior with standard deviation one over the root of the inputs."""
    return dist.Normal(0.0, shape[0] ** -0.5 if len(shape) > 1 else 0.3)


def model(x: jax.Array, y: jax.Array) -> None:
    """The posterior of the network: categorical outputs."""
    network = random_flax_module("net", NETWORK, prior=prior, input_shape=(1, 64))
    numpyro.sample("y", dist.Categorical(logits=network(x)), obs=y)


def nested(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The network's own tree of variables such as `net.up0.kernel`, or of `up0.kernel`."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        *_, layer, own = name.split(".")
        found.setdefault(layer, {})[own] = value
    return found


def score(draws: dict[str, np.ndarray], x: jax.Array, y: jax.Array) -> float:
    """Mean log predictive probability of labels, nats, of draws (draw, ...)."""
    chosen = jax.jit(lambda p: jax.nn.log_softmax(logits(nested(p), x))[jnp.arange(len(y)), y])
    each = np.asarray(jax.lax.map(chosen, {n: jnp.asarray(v) for n, v in draws.items()}))
    return float(np.log(np.mean(np.exp(each), axis=0)).mean())


def measure(name: str, draws: dict[str, np.ndarray], x: jax.Array, y: jax.Array) -> None:
    """Print R-hat of the weights (chain, draw, ...), and the log score of one Gaussian with their moments."""
    found = np.concatenate([rhats(v.reshape(*v.shape[:2], -1)) for v in draws.values()])
    rng = np.random.default_rng(0)
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in draws.items()}
    gaussian = {n: rng.normal(v.mean(0), v.std(0), (200, *v.shape[1:])) for n, v in flat.items()}
    mean = {n: v.mean(0)[None] for n, v in flat.items()}
    known = (
        f"R-hat of weights: median {np.median(found):.2f}, {np.mean(found > 1.05):.0%} above 1.05; "
    )
    print(
        f"{name:11s} {known if len(next(iter(draws.values()))) > 1 else ''}log score: one Gaussian "
        f"{score(gaussian, x, y):.3f}, its mean alone {score(mean, x, y):.3f}",
        flush=True,
    )


def train(count: int, x: jax.Array, y: jax.Array) -> dict[str, Any]:
    """Train networks by Adam on all data, each from a start of its own."""
    adam = optax.adam(3e-3)
    loss = jax.grad(lambda p: -jax.nn.log_softmax(logits(p, x))[jnp.arange(len(y)), y].mean())

    def one(key: jax.Array) -> Any:
        start = NETWORK.init(key, x[:1])["params"]

        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            change, state = adam.update(loss(carry[0]), carry[1])
            return (optax.apply_updates(carry[0], change), state), None

        return jax.lax.scan(step, (start, adam.init(start)), length=200)[0][0]

    found = jax.lax.map(jax.jit(one), jax.random.split(jax.random.key(0), count))
    return {str(k): jax.tree.map(lambda v, k=k: np.asarray(v[k]), found) for k in range(count)}


def compare_trained(count: int, data: tuple[jax.Array, ...]) -> None:
    """The same measures for networks that were trained apart, which are no posterior."""
    x, y, x_new, y_new = data
    found = ob.align(train(count, x, y), apply=logits, x=x[:8])
    print(f"{count} trained networks: log score of all {score(found.given, x_new, y_new):.3f}")
    for name, values in (("as trained", found.given), ("aligned", found.given | found.aligned)):
        measure(name, {n: v[None] for n, v in values.items()}, x_new, y_new)
    loss = jax.jit(lambda p: -jax.nn.log_softmax(logits(p, x))[jnp.arange(len(y)), y].mean())
    print(ob.networks.barriers(found, loss=loss, pairs=12, num_points=11))


def main() -> None:
    """Sample, align, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--thin", type=int, default=20)
    parser.add_argument(
        "--trained", type=int, default=16, help="networks; with 0 chains, these alone"
    )
    options = parser.parse_args()
    x, y = load_digits(return_X_y=True)
    x, y = jnp.asarray(x / 16, jnp.float32), jnp.asarray(y)
    x, y, x_new, y_new = x[:TRAIN], y[:TRAIN], x[-500:], y[-500:]
    compare_trained(options.trained, (x, y, x_new, y_new))
    if not options.chains:
        return
    target = ob.numpyro_model(model, {"x": x, "y": y})
    begun = time.perf_counter()
    posterior = ob.mclmc(
        target,
        chains=options.chains,
        draws=options.draws,
        thin=options.thin,
        warmup=2000,
        init_radius=0.2,
        metric="unit",
        dtype="float32",
        seed=1,
    )
    draws = {str(n): v.values for n, v in posterior["posterior"].data_vars.items()}
    size = sum(int(np.prod(values.shape[2:])) for values in draws.values())
    print(
        f"{size:,} weights, {options.chains} chains: {time.perf_counter() - begun:.0f} s",
        flush=True,
    )
    begun = time.perf_counter()
    aligned = ob.align(posterior, reference="mean")
    seconds = time.perf_counter() - begun
    apart = aligned.distance_after.mean() / aligned.distance_before.mean()
    print(f"aligned in {seconds:.1f} s; squared distance to the mean {apart:.2f} of what it was")
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in draws.items()}
    predict = jax.jit(lambda p: jax.nn.log_softmax(logits(nested(p), x_new[:100])))
    out = np.asarray(jax.lax.map(predict, {n: jnp.asarray(v) for n, v in flat.items()}))
    found = rhats(out.reshape(*next(iter(draws.values())).shape[:2], -1))
    print(
        f"predictions R-hat: median {np.median(found):.3f}, {np.mean(found > 1.05):.0%} above 1.05; "
        f"log score of all draws {score(flat, x_new, y_new):.3f}"
    )
    measure("as sampled", draws, x_new, y_new)
    moved = {n: aligned.posterior["posterior"][n].values for n in draws}
    measure("aligned", moved, x_new, y_new)
    one_loss = jax.jit(lambda p: -jax.nn.log_softmax(logits(p, x))[jnp.arange(TRAIN), y].mean())
    print(
        ob.networks.barriers(posterior, loss=lambda p: one_loss(nested(p)), pairs=12, num_points=11)
    )


if __name__ == "__main__":
    main()
