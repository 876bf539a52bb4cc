"""Seconds of a first and of a second start: what commands import, and what keeping JAX's compiled kernels saves.

    .venv/bin/python benchmarks/starts.py [--repeats N] [--json]

Each command is run in a process of its own, with an empty cache and then again: commands on a small posterior;
`onebasin sample` of a mixture in Stan, and of a normal distribution's mean and scale in NumPyro, which samples for a
tenth of a second; `ob.nuts` of a small network after `ob.keep_compiled`. Seconds are those of the whole process,
imports included; CPU seconds count less of what else the machine does. The last column divides them by those of
`import arviz` in the same round: it depends little on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import xarray as xr

from onebasin.inference.runs.provenance import machine, versions

MODEL = """
import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist


def model(y):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfNormal(2))
    numpyro.sample("y", dist.Normal(mu, tau), obs=jnp.asarray(y))
"""
NETWORK = """
import numpy as np
import onebasin as ob

ob.keep_compiled()
rng = np.random.default_rng(1)
model = ob.networks.BayesianNetwork(ob.networks.Network(5, (8,)))
target = model.condition(rng.normal(size=(100, 5)), rng.normal(size=100))
ob.nuts(target, chains=2, warmup=100, draws=100, seed=1, progress=False)
"""
YARDSTICK = "`import arviz`"
PROGRAMS = Path(__file__).parents[1] / "studies" / "demo"


def _onebasin(words: str) -> list[str]:
    return ["-c", "from onebasin.cli.main import main; raise SystemExit(main())", *words.split()]


COMMANDS = {
    YARDSTICK: ["-c", "import arviz"],
    "`onebasin --help`": _onebasin("--help"),
    "`onebasin diagnose`": _onebasin("diagnose posterior.nc"),
    "`onebasin align`": _onebasin("align posterior.nc --exchangeable mu,sigma --out a.nc --force"),
    "`onebasin report`": _onebasin("report posterior.nc --out r.html --force"),
    "`onebasin sample`, a mixture in Stan": _onebasin(
        f"sample {PROGRAMS}/mixture.stan {PROGRAMS}/mixture.json --out m.nc --force"
    ),
    "`onebasin sample`, two parameters": _onebasin(
        "sample model.py:model data.json --out run.nc --force --seed 1"
    ),
    "`ob.nuts`, network 5-8-1": ["-c", NETWORK],
}


def write_inputs(folder: Path) -> None:
    """Write the model, its data and a posterior of two components."""
    (folder / "model.py").write_text(MODEL)
    (folder / "data.json").write_text(json.dumps({"y": [1.0, 2.0, 0.5, 3.1]}))
    mu, sigma = np.random.default_rng(1).normal(size=(2, 4, 200, 2))
    dims = ("chain", "draw", "component")
    posterior = xr.Dataset({"mu": (dims, mu), "sigma": (dims, np.exp(sigma))})
    xr.DataTree.from_dict({"posterior": posterior}).to_netcdf(folder / "posterior.nc")


def seconds(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one process."""
    before, began = _cpu(), time.perf_counter()
    env = {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / "cache"),
    }  # not in `folder`: its onebasin is no package
    done = subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return time.perf_counter() - began, _cpu() - before


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(command: list[str]) -> dict[str, tuple[float, float]]:
    """A first start and a second one, with a cache of their own."""
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name))
        return {start: seconds(command, Path(name)) for start in ("first", "second")}


def main() -> None:
    """Print a table, or its numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rounds = [{n: measure(c) for n, c in COMMANDS.items()} for _ in range(given.repeats)]
    if given.json:
        print(json.dumps({"machine": machine(), "versions": versions(), "seconds": rounds}))
        return
    print("| run | start | wall seconds | CPU seconds | of `import arviz` |")
    print("| --- | --- | --- | --- | --- |")
    for name in COMMANDS:
        for start in ("first", "second"):
            wall, cpu = (statistics.median(r[name][start][k] for r in rounds) for k in (0, 1))
            share = statistics.median(r[name][start][1] / r[YARDSTICK][start][1] for r in rounds)
            print(f"| {name} | {start} | {wall:.1f} | {cpu:.1f} | {share:.2f} |")


if __name__ == "__main__":
    main()
