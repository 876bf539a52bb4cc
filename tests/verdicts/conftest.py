"""The families of `benchmarks/verdicts`, loaded from where they lie, and commands as a user types them."""

import importlib
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import xarray as xr

from onebasin.cli.main import main

FOLDER = Path(__file__).parents[2] / "benchmarks" / "verdicts"


def load(name: str) -> ModuleType:
    """A module of the benchmark."""
    if "verdict_families" not in sys.modules:
        spec = spec_from_file_location(
            "verdict_families", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
        )
        package = module_from_spec(spec)
        sys.modules["verdict_families"] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"verdict_families.{name}")


FAMILIES = {family.name: family for family in load("families").FAMILIES}
labels, plain = load("labels"), load("plain")


@pytest.fixture
def draw() -> Callable[..., xr.DataTree]:
    """A posterior of a family."""

    def make(name: str, seed: int = 0) -> xr.DataTree:
        return FAMILIES[name].draw(seed).tree()

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
