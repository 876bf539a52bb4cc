"""Commands import what they use: JAX, NumPyro and parts of SciPy take longer to import than most of the work."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

JAX = [
    "jaxlib",
    "jax.numpy",
    "numpyro.distributions",
    "blackjax",
    "optax",
    "cmdstanpy",
    "distributed",
]
"""JAX and NumPyro by a part of each: ArviZ enters the packages as modules that are yet to load."""
FIGURES = [
    "matplotlib.figure",
    "arviz_plots",
    "arviz_stats",
    "scipy.stats",
    "scipy.optimize",
    "jinja2",
]
PROGRAM = "parameters { real mu; } model { mu ~ std_normal(); }"

SCRIPT = f"""
import json, sys
from onebasin.cli.main import main
for words in sys.argv[1:]:
    code = main(words.split())
    imported = [name for name in {(*JAX, *FIGURES)!r} if name in sys.modules]
    print(json.dumps([words, code, imported]), file=sys.stderr)
"""
COMMANDS: dict[str, tuple[str, ...]] = {
    "diagnose a.nc": (*JAX, *FIGURES[:-1]),
    "diagnose a.nc --exchangeable mu,sigma": (*JAX, *FIGURES[:-2]),
    "sample p.stan --out run.nc --draws 50 --warmup 50 --no-progress": (*JAX, *FIGURES[:-2]),
    "compare a.nc b.nc --permutations 19": JAX,
    "report a.nc --out report.html": JAX,
}
"""What a command leaves unimported. One process runs them in this order: what a later one lacks, none before has."""


@pytest.fixture
def folder(tmp_path):
    """Two posteriors and a program in files."""
    (tmp_path / "p.stan").write_text(PROGRAM)
    for seed, name in enumerate(("a", "b")):
        draws = np.random.default_rng(seed).normal(size=(2, 4, 200, 2))
        held = {"mu": draws[0], "sigma": np.exp(draws[1])}
        variables = {name: (("chain", "draw", "k"), values) for name, values in held.items()}
        posterior = xr.Dataset(variables, coords={"chain": range(4), "draw": range(200)})
        xr.DataTree.from_dict({"posterior": posterior}).to_netcdf(tmp_path / f"{name}.nc")
    return tmp_path


@pytest.mark.parametrize("number", [1, pytest.param(len(COMMANDS), marks=pytest.mark.full)])
def test_commands_import_what_they_use(folder, number):
    commands = [*COMMANDS][:number]
    command = [sys.executable, "-c", SCRIPT, *commands]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('["')]
    assert [words for words, *_ in told] == commands, done.stderr
    for words, code, imported in told:
        assert code == 0, done.stderr
        assert set(imported).isdisjoint(COMMANDS[words]), words
