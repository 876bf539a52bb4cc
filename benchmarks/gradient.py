"""Time one gradient of the log density in NumPyro (float64, float32) and Stan, for each parametrisation.

    .venv/bin/python benchmarks/gradient.py [--repeats N] [--json]

The engines run one after the other in one process, on one thread each, as in a sampler. NumPyro runs a compiled loop,
in which each step depends on the previous one. Stan runs static HMC in CmdStan with a fixed step size, and the time is
divided by the number of leapfrog steps. The output is the median over several rounds with its spread, the ratio to
Stan, and the ratio to free weights in the same engine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

# Use one thread, as parallel chains do. This must precede the import of JAX.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.inference.density.network import density_of
from onebasin.inference.runs.posterior import machine, versions
from onebasin.models import NetworkTarget
from onebasin.models.data import own_split, split, standardise
from onebasin.networks import BayesianNetwork, Network, Parametrisation, load_data
from onebasin.stan.run import ReadyProgram, make_ready, read, run

STEP = 1e-6
"""Step size, so small that trajectories hardly move: every gradient has the same cost and nothing diverges."""


PARAMETRISATIONS = (
    Parametrisation(),
    Parametrisation(weights="givens"),
    Parametrisation(biases="ordered"),
    Parametrisation(weights="givens", biases="ordered"),
)


def targets() -> dict[str, dict[str, NetworkTarget]]:
    """Return the posteriors by parametrisation, for the paper's teacher and Boston Housing with 50 hidden units."""
    teacher = own_split(load_data("relu-teacher")).train
    boston = standardise(split(load_data("boston"), seed=0)).train
    cases = {
        "relu-teacher (2 units)": (Network(2, (2,), 1), teacher),
        "boston (50 units)": (Network(13, (50,), 1), boston),
    }
    return {
        name: {
            p.label: BayesianNetwork(network, parametrisation=p).condition(data.x, data.y)
            for p in PARAMETRISATIONS
        }
        for name, (network, data) in cases.items()
    }


def time_numpyro(target: NetworkTarget, dtype: str, num: int, repeats: int) -> list[float]:
    """Return the microseconds per gradient, one number per round."""
    with precision(dtype):
        density = density_of(target)
        start = density.random_starts(keys_for(Purpose.CHAIN_START, 0, 1), 0.5)[0]
        gradient = jax.grad(lambda v: -density.log_density(v))
        step = jnp.asarray(STEP**2, start.dtype)
        loop = jax.jit(lambda v: jax.lax.fori_loop(0, num, lambda _, u: u - step * gradient(u), v))
        loop(start).block_until_ready()
        rounds = []
        for _ in range(repeats):
            began = time.perf_counter()
            loop(start).block_until_ready()
            rounds.append((time.perf_counter() - began) / num * 1e6)
        return rounds


def static_hmc(program: ReadyProgram, csv: Path, num: int, *, iterations: int) -> list[str]:
    """Return the arguments of static HMC with `num` leapfrog steps, from points near zero."""
    return [
        *("random", "seed=1", "data", f"file={program.data}", "init=0.5", "output", f"file={csv}"),
        *("method=sample", f"num_samples={iterations}", "num_warmup=0", "adapt", "engaged=0"),
        *("algorithm=hmc", "engine=static", f"int_time={STEP * num / iterations!r}"),
        f"stepsize={STEP!r}",
    ]


def time_stan(target: NetworkTarget, num: int, repeats: int) -> list[float]:
    """Return the microseconds per leapfrog step of static HMC, one number per round."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = make_ready(target, folder)
        csv = folder / "draws.csv"
        arguments = static_hmc(program, csv, num, iterations=10)
        rounds = []
        for _ in range(repeats):
            run(program, arguments, folder)
            rounds.append(read(csv).seconds("Sampling") / num * 1e6)
    return rounds


def time_all(
    by_label: dict[str, NetworkTarget], num: int, repeats: int
) -> dict[str, dict[str, list[float]]]:
    """Time every engine and parametrisation of one network."""
    return {
        "NumPyro float64": {
            label: time_numpyro(t, "float64", num, repeats) for label, t in by_label.items()
        },
        "NumPyro float32": {
            label: time_numpyro(t, "float32", num, repeats) for label, t in by_label.items()
        },
        "Stan": {label: time_stan(t, num, repeats) for label, t in by_label.items()},
    }


def show(name: str, table: dict[str, dict[str, list[float]]]) -> None:
    """Print the rows of one network."""
    print(
        f"\n{name}\n{'':32s} {'median us':>10s} {'min':>8s} {'max':>8s} {'of Stan':>8s} {'of free':>8s}"
    )
    middle = {e: {n: statistics.median(r) for n, r in rows.items()} for e, rows in table.items()}
    for engine, rows in table.items():
        for label, rounds in rows.items():
            m = middle[engine][label]
            print(
                f"{engine:16s} {label:15s} {m:10.1f} {np.min(rounds):8.1f} {np.max(rounds):8.1f} "
                f"{m / middle['Stan'][label]:8.3f} {m / middle[engine]['free']:8.2f}"
            )


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = targets().items()
    tables = {
        name: time_all(by_label, 100_000 if "teacher" in name else 10_000, options.repeats)
        for name, by_label in cases
    }
    if options.json:
        print(json.dumps({"machine": machine(), "versions": versions(), "microseconds": tables}))
        return
    print(machine())
    for name, table in tables.items():
        show(name, table)


if __name__ == "__main__":
    main()
