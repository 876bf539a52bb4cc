"""Measure peak memory for 128 MB of draws: 4 chains of 20,000 draws of 200 parameters.

The NumPyro model also has 50 observations, whose log likelihoods and predictions take another 48 MB.

    .venv/bin/python benchmarks/memory.py [CASE...] [--json]

Every case runs twice, each time in a new process: with 50 draws per chain (the baseline: Python, JAX, the compiled
model) and with 20,000. The output is the peak resident memory from the kernel, including child processes, the amount
above the baseline, and the limit. The exit code is 1 if a case exceeds its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHAINS, DRAWS, FEW_DRAWS, PARAMETERS, PARTS = 4, 20_000, 50, 200, 20

PROGRAM = f"parameters {{ vector[{PARAMETERS}] x; }} model {{ x ~ std_normal(); }}"

SAMPLE_IN_PYTHON = """
import sys
from pathlib import Path
import jax
import numpy as np
jax.config.update("jax_enable_x64", True)
import numpyro
from numpyro import distributions as dist
import onebasin as ob

def model():
    x = numpyro.sample("x", dist.Normal(0, 1).expand([int(sys.argv[3])]).to_event(1))
    numpyro.sample("y", dist.Normal(x[:50], 1), obs=np.zeros(50))

target = ob.Target("normal", numpyro_model=model)
settings = ob.Nuts(chains=int(sys.argv[4]), warmup=100, draws=int(sys.argv[2]))
ob.save(ob.infer(target, method=settings, checkpoint=Path(sys.argv[1] + ".chains")), sys.argv[1], force=True)
"""

MAKE_POSTERIOR = """
import sys
import numpy as np
from onebasin import Target, save
from onebasin.inference.runs.posterior import build

path, draws, parameters, chains, seed, parts = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(seed)
shape = (chains, draws)
w = rng.normal(size=(*shape, parts, parameters // parts))
w += 10 * np.arange(parts)[:, None]
for chain in range(chains):  # labels that switch
    w[chain] = w[chain][:, rng.permutation(parts)]
mu, w = w[..., 0], w[..., 1:]
stats = {name: rng.normal(size=shape) for name in ("lp", "energy")}
stats |= {"diverging": np.zeros(shape, bool), "tree_depth": np.full(shape, 3), "n_steps": np.full(shape, 7)}
how = {"engine": "stan", "method": "nuts", "max_tree_depth": 10}
save(build(Target("normal"), {"mu": mu, "w": w}, stats, how), path)
"""


@dataclass(frozen=True)
class Case:
    """A command or function to measure.

    Attributes
    ----------
    words : callable
        Function of a folder and the number of draws that returns the arguments of `python`.
    limit : float
        Limit in megabytes above the baseline.
    inputs : int
        Number of posterior files (`0.nc`, `1.nc`, ...) to make first.
    """

    words: Callable[[Path, int], list[str]]
    limit: float
    inputs: int = 0


def command(*words: str) -> list[str]:
    """Return the arguments of `python` for a command of `onebasin`."""
    start = "import sys; from onebasin.cli.main import main; sys.exit(main())"
    return ["-c", start, *words]


def sample_stan(folder: Path, draws: int) -> list[str]:
    """Return `onebasin sample` for 200 normal variables, including the final diagnosis."""
    program = folder / "normal.stan"
    program.write_text(PROGRAM)
    sizes = ("--draws", str(draws), "--chains", str(CHAINS), "--warmup", "100")
    return command("sample", str(program), "--out", str(folder / "run.nc"), *sizes, "--no-progress")


def sample_numpyro(folder: Path, draws: int) -> list[str]:
    """Return a script that samples the same variables in NumPyro with checkpoints, and saves the posterior."""
    return [
        "-c",
        SAMPLE_IN_PYTHON,
        str(folder / "run.nc"),
        str(draws),
        str(PARAMETERS),
        str(CHAINS),
    ]


CASES = {
    "sample Stan": Case(sample_stan, 100),
    "sample NumPyro": Case(sample_numpyro, 60),
    "diagnose": Case(lambda f, _: command("diagnose", str(f / "0.nc")), 300, inputs=1),
    "diagnose aligned": Case(
        lambda f, _: command("diagnose", str(f / "0.nc"), "--exchangeable", "mu,w"), 300, inputs=1
    ),
    "align": Case(
        lambda f, _: command(
            "align", str(f / "0.nc"), "--exchangeable", "mu,w", "--out", str(f / "aligned.nc")
        ),
        100,
        inputs=1,
    ),
    "convert": Case(
        lambda f, _: command("convert", str(f / "0.nc"), "--out", str(f / "again.nc")), 60, inputs=1
    ),
    "compare": Case(
        lambda f, _: command("compare", str(f / "0.nc"), str(f / "1.nc")), 300, inputs=2
    ),
    "report": Case(
        lambda f, _: command("report", str(f / "0.nc"), "--out", str(f / "page.html")),
        300,
        inputs=1,
    ),
}


def peak(case: Case, draws: int) -> float:
    """Return the peak memory of one run of a case, in megabytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(case.inputs):
            sizes = [str(n) for n in (draws, PARAMETERS, CHAINS, seed, PARTS)]
            made = [sys.executable, "-c", MAKE_POSTERIOR, str(folder / f"{seed}.nc"), *sizes]
            subprocess.run(made, check=True)
        words = [sys.executable, *case.words(folder, draws)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{words} failed with exit code {process.returncode}")
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.cases or CASES:
        if name == "sample Stan":
            peak(
                CASES[name], FEW_DRAWS
            )  # Compile first, because the compiler needs the most memory.
        low, high = (peak(CASES[name], draws) for draws in (FEW_DRAWS, DRAWS))
        rows.append({"case": name, "baseline": low, "peak": high, "above": high - low})
        rows[-1] |= {"limit": CASES[name].limit, "kept": high - low <= CASES[name].limit}
        if not arguments.json:
            print(
                f"{name:<16} baseline {low:6.0f} MB, peak {high:6.0f} MB, above {high - low:5.0f} MB, "
                f"limit {CASES[name].limit:.0f} MB{'' if rows[-1]['kept'] else ' EXCEEDED'}"
            )
    if arguments.json:
        print(json.dumps(rows, indent=2))
    return 0 if all(row["kept"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
