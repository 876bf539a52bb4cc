"""Commands on files leave JAX and NumPyro alone: importing them takes longer than most of the work."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from ..each import each

HEAVY = ("jaxlib", "jax.numpy", "numpyro.distributions", "blackjax", "optax", "cmdstanpy")
"""JAX and NumPyro by a part of each: ArviZ enters the packages as modules that are yet to load."""

SCRIPT = f"""
import json, sys
from onebasin.cli.main import main
code = main(sys.argv[1:])
imported = [name for name in {HEAVY!r} if name in sys.modules]
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
    "words",
    [
        "diagnose a.nc",
        "diagnose a.nc --exchangeable mu,sigma",
        "align a.nc --exchangeable mu,sigma --out aligned.nc",
        "compare a.nc b.nc --permutations 19",
        "report a.nc --out report.html",
    ],
)
def test_commands_on_files_import_neither_jax_nor_numpyro(folder, tmp_path, words):
    assert imported(folder, tmp_path, words) == []


def imported(folder, tmp_path, words: str) -> list[str]:
    """Run a command; return which of `HEAVY` it imported."""
    for name in ("a.nc", "b.nc"):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to(folder / name)
    command = [sys.executable, "-c", SCRIPT, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    code, found = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return found
