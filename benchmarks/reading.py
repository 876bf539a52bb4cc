"""How long it takes to read the symmetries of a program, and what share tracing has: `python -m benchmarks.reading`.

Perceptrons of three layers and residual networks of growing size, a loop of growing length, and, with `--align`, the
memory of aligning 64 draws of a perceptron 784-512-512-10. Seconds are the fastest of three rounds.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import onebasin as ob
from onebasin.models.reading.read import read, traced

Shapes = dict[str, tuple[int, ...]]
Program = Callable[[Mapping[str, Any]], Any]
X = np.random.default_rng(0).normal(size=(100, 784))
Y = np.random.default_rng(1).normal(size=(100, 10))


def perceptron(width: int) -> tuple[Program, Shapes]:
    """784-width-width-10."""
    shapes = {"W1": (784, width), "b1": (width,), "W2": (width, width), "b2": (width,)}
    shapes |= {"W3": (width, 10)}

    def density(p: Mapping[str, Any]) -> Any:
        hidden = jax.nn.relu(jax.nn.relu(X @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"])
        return -0.5 * jnp.sum((hidden @ p["W3"] - Y) ** 2) - sum(jnp.sum(v**2) for v in p.values())

    return density, shapes


def residual(blocks: int, width: int = 32) -> tuple[Program, Shapes]:
    """A stream with that many branches."""
    shapes: Shapes = {"stem": (784, width), "head": (width, 10)}
    for k in range(blocks):
        shapes |= {
            f"up{k}": (width, width + 1),
            f"bias{k}": (width + 1,),
            f"down{k}": (width + 1, width),
        }

    def density(p: Mapping[str, Any]) -> Any:
        h = X @ p["stem"]
        for k in range(blocks):
            h = h + jax.nn.relu(h @ p[f"up{k}"] + p[f"bias{k}"]) @ p[f"down{k}"]
        return -0.5 * jnp.sum((h @ p["head"] - Y) ** 2)

    return density, shapes


def cases() -> Iterator[tuple[str, Callable[[], tuple[Program, Shapes]]]]:
    """All that is read, made again for every round, as JAX remembers what it traced."""
    for width in (1, 12, 110, 512, 2_750):
        yield f"perceptron 784-{width}-{width}-10", partial(perceptron, width)
    for blocks in (1, 10, 100):
        yield f"residual network of {blocks} branches", partial(residual, blocks)


def seconds(call: Callable[..., Any], make: Callable[[], tuple[Program, Shapes]]) -> float:
    """The fastest of three."""
    found = []
    for _ in range(3):
        given = make()
        started = time.perf_counter()
        call(*given)
        found.append(time.perf_counter() - started)
    return min(found)


def align() -> None:
    """Align 64 draws of 670,000 parameters, and tell seconds and memory."""
    density, shapes = perceptron(512)
    target = ob.target(density, {n: ("real", s) for n, s in shapes.items()})
    rng = np.random.default_rng(2)
    centre = {n: rng.normal(size=s) for n, s in shapes.items()}
    draws = {
        n: np.stack([v + 0.1 * rng.normal(size=v.shape) for _ in range(64)]).astype(np.float32)
        for n, v in centre.items()
    }
    symmetry = ob.find_symmetry(target).symmetry
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    ob.align({n: v.reshape(4, 16, *v.shape[1:]) for n, v in draws.items()}, symmetry)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = sum(v.nbytes for v in draws.values())
    print(
        f"64 draws of {sum(math.prod(s) for s in shapes.values()):,} parameters ({size / 2**20:.0f} MiB): "
        f"{time.perf_counter() - started:.1f} s, {(peak - before) / 2**10:.0f} MiB more at the peak"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--align", action="store_true")
    if parser.parse_args().align:
        align()
        return
    for name, make in cases():
        whole, tracing = seconds(read, make), seconds(traced, make)
        density, shapes = make()
        found = read(density, shapes)
        print(
            f"{name:36s} {sum(math.prod(s) for s in shapes.values()):10,} parameters {found.equations:5d} equations "
            f"{whole:6.3f} s, of which tracing {tracing / whole:.0%}; {len(found.classes)} classes",
            flush=True,
        )


if __name__ == "__main__":
    main()
