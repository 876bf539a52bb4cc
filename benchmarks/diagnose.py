"""`onebasin diagnose` beside `az.summary` on the same file: 4 chains of 2,000 draws of 2,000 parameters.

    .venv/bin/python benchmarks/diagnose.py [--parameters 2000] [--draws 2000] [--rounds 3] [--json]

Both run in processes of their own, turn by turn, on one file: a regression's coefficients with a hierarchical scale, as
NUTS leaves them. `import` beside them is what the process costs before it does anything. Printed are seconds of the
whole process by the wall clock and by the processor, and its peak of resident memory as the kernel counts it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from onebasin import Target, save
from onebasin.inference.runs.origin import machine, versions
from onebasin.inference.runs.posterior import build

ARVIZ = """
import sys, xarray as xr, arviz as az
tree = xr.open_datatree(sys.argv[1], engine="h5netcdf")
print(az.summary(tree))
"""

COMMANDS = {
    "az.summary": lambda path: ["-c", ARVIZ, path],
    "ob.diagnose": lambda path: [
        "-c",
        "import sys, onebasin as ob\nprint(ob.diagnose(ob.open_posterior(sys.argv[1])).judgement.sentence)",
        path,
    ],
    "onebasin diagnose": lambda path: [
        "-c",
        "import sys; from onebasin.cli.main import main; sys.exit(main())",
        "diagnose",
        path,
    ],
    "import arviz": lambda _: ["-c", "import arviz, xarray, h5netcdf"],
    "import onebasin": lambda _: ["-c", "import onebasin as ob; ob.diagnose, ob.open_posterior"],
}


def make(path: Path, parameters: int, draws: int) -> None:
    """Write the file that both read."""
    rng = np.random.default_rng(0)
    shape = (4, draws)
    values = rng.normal(size=(*shape, parameters - 2))
    values *= rng.uniform(0.2, 2, size=parameters - 2)
    values += rng.normal(0, 1, size=parameters - 2)
    lp = -0.5 * rng.chisquare(parameters, shape)
    stats = {"lp": lp, "energy": -lp + 0.5 * rng.chisquare(parameters, shape)}
    stats |= {"diverging": np.zeros(shape, bool), "tree_depth": np.full(shape, 3)}
    stats |= {"n_steps": np.full(shape, 7), "step_size": np.full(shape, 0.4)}
    draws_ = {"alpha": rng.normal(size=shape), "beta": values, "tau": rng.lognormal(size=shape)}
    how = {"engine": "stan", "method": "nuts", "max_tree_depth": 10}
    save(build(Target("regression"), draws_, stats, how), path)


def run(words: list[str]) -> tuple[float, float, float]:
    """Seconds by the wall and by the processor, and megabytes, of one process."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}")
    megabytes = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return seconds, used.ru_utime + used.ru_stime, megabytes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "regression.nc"
        make(path, options.parameters, options.draws)
        size = path.stat().st_size / 1e6
        for _ in range(options.rounds):
            for name, words in COMMANDS.items():
                found[name].append(run(words(str(path))))
    if options.json:
        load = os.getloadavg()
        print(json.dumps({"machine": machine(), "versions": versions(), "load": load, **found}))
        return
    print(f"{size:.0f} MB; {machine()}; load {os.getloadavg()[1]:.1f} over the last 5 minutes")
    for name, rounds in found.items():
        wall, cpu, memory = zip(*rounds, strict=True)
        print(
            f"{name:<18} {statistics.median(wall):6.1f} s ({min(wall):.1f} to {max(wall):.1f}), "
            f"processor {statistics.median(cpu):6.1f} s, peak {max(memory):5.0f} MB"
        )


if __name__ == "__main__":
    main()
