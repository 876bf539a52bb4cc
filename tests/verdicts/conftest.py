"""The families of `benchmarks/verdicts`, and commands as a user types them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from benchmarks.verdicts.families import FAMILIES
from onebasin.cli.main import main

BY_NAME = {family.name: family for family in FAMILIES}


@pytest.fixture
def draw() -> Callable[..., xr.DataTree]:
    """A posterior of a family."""

    def make(name: str, seed: int = 0) -> xr.DataTree:
        return BY_NAME[name].draw(seed).tree()

    return make


@pytest.fixture
def write(tmp_path: Path) -> Callable[[xr.DataTree], Path]:
    """Write a posterior as another tool would."""

    def make(tree: xr.DataTree, name: str = "run.nc") -> Path:
        tree.to_netcdf(tmp_path / name, engine="h5netcdf")
        return tmp_path / name

    return make


@pytest.fixture
def onebasin(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `onebasin` with these words; returns exit code, stdout and stderr."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def generator() -> np.random.Generator:
    """Source of randomness of a test's own simulation."""
    return np.random.default_rng(12)
