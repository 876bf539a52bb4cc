"""Instructions that Stan takes for one gradient of a network's log density, by valgrind's callgrind.

    .venv/bin/python -m benchmarks.instructions [--json]

Counts do not depend on the machine's load, so that they tell a change of a few per cent where times do not; what they
leave out is the memory, and the kernel. A gradient is the difference of two runs of static HMC, of 44 leapfrog steps
and of 4. Needs `valgrind` (Debian's package of that name).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.gradient import static_hmc
from onebasin.inference.runs.provenance import machine, versions
from onebasin.models import NetworkTarget
from onebasin.models.data import split, standardise
from onebasin.networks import BayesianNetwork, Gaussian, Network, Parametrisation, load_data
from onebasin.stan.run import ReadyProgram, make_ready

FEW, MANY = 4, 44
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


def targets() -> dict[str, NetworkTarget]:
    """Networks on Boston Housing's 404 training rows, and one of two units on 100 rows."""
    wide, small = Network(13, (50,), 1), Network(2, (2,), 1)
    models = {
        name: BayesianNetwork(wide, parametrisation=Parametrisation(weights=name))
        for name in ("free", "givens", "givens_seamless", "unit_vector")
    }
    models["predicted noise"] = BayesianNetwork(
        wide, Gaussian(noise_sd="predicted", noise_scale=0.7)
    )
    models["13-20-20-1"] = BayesianNetwork(Network(13, (20, 20), 1))
    models["13-20-20-1, skips"] = BayesianNetwork(
        Network(13, (20, 20), 1, skip="orthogonal", skip_seed=3)
    )
    for activation in ("leaky_relu", "tanh", "selu", "softplus", "silu"):
        models[f"13-20-1, {activation}"] = BayesianNetwork(
            Network(13, (20,), 1, activation=activation)
        )
    boston = standardise(split(load_data("boston"), seed=0)).train
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 2)), rng.normal(size=(100, 1))
    found = {name: model.condition(boston.x, boston.y) for name, model in models.items()}
    found["2-2-1, free"] = BayesianNetwork(small).condition(x, y)
    givens = Parametrisation("givens", "ordered")
    found["2-2-1, givens+ordered"] = BayesianNetwork(small, parametrisation=givens).condition(x, y)
    return found


def total(program: ReadyProgram, steps: int, folder: Path) -> int:
    """Instructions of a run of so many leapfrog steps."""
    counts = folder / f"{steps}.callgrind"
    subprocess.run(
        [
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", "-q"),
            program.command[0],
            *static_hmc(program, folder / "draws.csv", steps, iterations=1),
        ],
        check=True,
        capture_output=True,
    )
    found = _TOTAL.search(counts.read_text())
    assert found is not None, "callgrind has written no total"
    return int(found.group(1))


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("`valgrind` is not installed; get it with `apt install valgrind`.")
    counts = {}
    for name, target in targets().items():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            program = make_ready(target, folder)
            few, many = (total(program, steps, folder) for steps in (FEW, MANY))
        counts[name] = (many - few) / (MANY - FEW)
        if not options.json:
            print(f"{name:22s} {counts[name] / 1e3:8.0f} thousand", flush=True)
    if options.json:
        print(json.dumps({"machine": machine(), "versions": versions(), "instructions": counts}))


if __name__ == "__main__":
    main()
