"""Commands import what they use: JAX, NumPyro and parts of SciPy take longer to import than most of the work."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from ..each import each

JAX = (
    "jaxlib",
    "jax.numpy",
    "numpyro.distributions",
    "blackjax",
    "optax",
    "cmdstanpy",
    "distributed",
)
"""JAX and NumPyro by a part of each: ArviZ enters the packages as modules that are yet to load."""
FIGURES = (
    "matplotlib.figure",
    "arviz_plots",
    "arviz_stats",
    "scipy.stats",
    "scipy.optimize",
    "jinja2",
)
PROGRAM = "parameters { real mu; } model { mu ~ std_normal(); }"

SCRIPT = f"""
import json, sys
from onebasin.cli.main import main
code = main(sys.argv[1:])
imported = [name for name in {(*JAX, *FIGURES)!r} if name in sys.modules]
print(json.dumps([code, imported]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two posteriors in files."""
    folder = tmp_path_factory.mktemp("posteriors")
    for seed, name in enumerate(("a", "b")):
        draws = np.random.default_rng(seed).normal(size=(2, 4, 200, 2))
        posterior = xr.Dataset(
            {
                "mu": (("chain", "draw", "k"), draws[0]),
                "sigma": (("chain", "draw", "k"), np.exp(draws[1])),
            },
            coords={"chain": range(4), "draw": range(200)},
        )
        xr.DataTree.from_dict({"posterior": posterior}).to_netcdf(folder / f"{name}.nc")
    return folder


@each(
    ("words", "without"),
    [
        ("diagnose a.nc", (*JAX, *FIGURES[:-1])),
        ("diagnose a.nc --exchangeable mu,sigma", (*JAX, *FIGURES[:-2])),
        ("compare a.nc b.nc --permutations 19", JAX),
        ("report a.nc --out report.html", JAX),
        ("sample p.stan --out run.nc --draws 50 --warmup 50 --no-progress", (*JAX, *FIGURES[:-2])),
    ],
)
def test_commands_import_what_they_use(folder, tmp_path, words, without):
    assert imported(folder, tmp_path, words).isdisjoint(without)


def imported(folder, tmp_path, words: str) -> set[str]:
    """Run a command; return which of the heavy modules it imported."""
    (tmp_path / "p.stan").write_text(PROGRAM)
    for name in ("a.nc", "b.nc"):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to(folder / name)
    command = [sys.executable, "-c", SCRIPT, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    code, found = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(found)
