"""A gradient of a Stan program in this process: the bare C call, through ctypes, and through JAX.

    .venv/bin/python benchmarks/library.py [PROGRAM.stan DATA.json] [--points 1000] [--repeats 7] [--json]

By default a program of three parameters, whose gradient takes so little that nothing hides what a call adds. CPU
microseconds a gradient of the log density, each the least of several rounds, which other work on the machine adds to:

- `bare`: a loop in C over points, one call from Python for all of them;
- `ctypes`: one point a call from Python, `StanLibrary.log_density_gradient`;
- `loop`: inside a compiled JAX loop whose every step depends on the one before, as a sampler calls it;
- `batch`: `jax.vmap` over all points in one compiled call;
- `call`: one compiled JAX call from Python a point, waited for; `empty` is the same of a function without Stan in it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

# One thread, as a chain beside other chains has it; must stand before JAX is imported.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np

import onebasin as ob
from onebasin.base.precision import precision
from onebasin.inference.density.stan_vectors import StanVectors
from onebasin.inference.runs.provenance import machine, versions

PROGRAM = Path(__file__).parents[1] / "tests" / "inference" / "programs" / "known.stan"
DATA = {"mu": [1.0, -2.0], "Sigma": [[1.0, 0.6], [0.6, 0.5]], "shape": 3.0, "rate": 2.0}
STEP = 1e-9
"""So small that a loop stays where it is."""


def seconds(run: Callable[[], object], repeats: int) -> list[float]:
    """CPU time of each round, after one that is not counted."""
    run()
    rounds = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        rounds.append(time.process_time() - began)
    return rounds


def measure(density: StanVectors, count: int, repeats: int) -> dict[str, float]:
    """Microseconds a gradient, by way of calling."""
    library = density.calls.library
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (count, density.size))
    vectors = jnp.asarray(rows)
    gradient = jax.value_and_grad(density.log_density)
    one, many = jax.jit(gradient), jax.jit(jax.vmap(gradient))
    empty = jax.jit(lambda vector: (jnp.sum(vector), -vector))

    @jax.jit
    def loop(vector: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, count, lambda _, v: v + STEP * gradient(v)[1], vector)

    first = vectors[0]
    ways: dict[str, Callable[[], object]] = {
        "bare": lambda: library.log_density_gradient(rows, propto=False),
        "ctypes": lambda: [library.log_density_gradient(row, propto=False) for row in rows],
        "loop": lambda: loop(first).block_until_ready(),
        "batch": lambda: jax.block_until_ready(many(vectors)),
        "call": lambda: [jax.block_until_ready(one(first)) for _ in range(count)],
        "empty": lambda: [jax.block_until_ready(empty(first)) for _ in range(count)],
    }
    return {name: min(seconds(way, repeats)) / count * 1e6 for name, way in ways.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", type=Path, default=PROGRAM)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    data = DATA if given.program == PROGRAM else given.data
    with precision("float64"):
        density = StanVectors.of(ob.stan_program(given.program, data))
        found = measure(density, given.points, given.repeats)
    how = {"machine": machine(), "versions": versions(), "program": given.program.name}
    if given.json:
        print(json.dumps({**how, "parameters": density.size, "microseconds": found}))
        return
    print(f"{how['machine']}\n{given.program.name}, {density.size} parameters: microseconds")
    for name, value in found.items():
        print(f"  {name:8s} {value:8.2f}  {value - found['bare']:+8.2f} beyond the bare call")


if __name__ == "__main__":
    main()
