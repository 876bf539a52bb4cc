"""Input files for commands: valid and invalid posteriors."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.inference.runs.posterior import build
from onebasin.models import BayesianNetwork, Exchangeable, Network, Target
from onebasin.models.load_data import load_data

from ..command_fixtures import chain_stats

CHAINS, DRAWS = 2, 40

Change = Callable[[dict[str, xr.Dataset], dict[str, Any]], None]
"""Function that changes a posterior's groups and attributes in place."""


@functools.cache
def mixture(*, declared: bool = False, seed: int = 1) -> xr.DataTree:
    """Return a posterior of three interchangeable components, as a sampler returns it."""
    rng = np.random.default_rng(seed)
    shape = (CHAINS, DRAWS)
    draws = {
        "mu": np.array([-3.0, 0.0, 3.0]) + 0.3 * rng.normal(size=(*shape, 3)),
        "sigma": np.exp(0.1 * rng.normal(size=(*shape, 3))),
        "noise": rng.normal(size=shape),
    }
    stats = chain_stats(shape, rng, tree_depth=np.full(shape, 3)) | {"lp": rng.normal(size=shape)}
    symmetry = (Exchangeable({"mu": 0, "sigma": 0}),) if declared else ()
    how = {"engine": "stan", "method": "nuts", "seed": 1, "max_tree_depth": 10, "wall_time": 1.0}
    return build(Target("mixture", symmetry=symmetry), draws, stats, how)


@functools.cache
def network() -> xr.DataTree:
    """Return a posterior of a small network, with its data."""
    data = load_data("relu-teacher")
    target = BayesianNetwork(Network(2, (2,))).condition(data.x, data.y, name="teacher")
    rng = np.random.default_rng(2)
    shape = (CHAINS, DRAWS)
    draws = {
        name: 0.5 * rng.normal(size=(*shape, *size))
        for name, size in target.model.network.shapes.items()
    }
    draws["sigma"] = np.exp(0.1 * rng.normal(size=shape))
    return build(
        target, draws, {"lp": rng.normal(size=shape)}, {"engine": "numpyro", "method": "nuts"}
    )


def changed(tree: xr.DataTree, change: Change) -> xr.DataTree:
    """Return a posterior with changed groups or attributes."""
    groups = {name: group.to_dataset().copy(deep=True) for name, group in tree.children.items()}
    attributes = dict(tree.attrs)
    change(groups, attributes)
    made = xr.DataTree.from_dict(groups)
    made.attrs = attributes
    return made


@functools.cache
def as_bytes(make: Callable[[], xr.DataTree]) -> bytes:
    """Return the file of a posterior as bytes."""
    return netcdf(make())


def netcdf(tree: xr.DataTree) -> bytes:
    """Return the NetCDF file of a tree as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.nc"
        tree.to_netcdf(path, engine="h5netcdf")
        return path.read_bytes()


def good(path: Path) -> None:
    """Write the valid posterior of a mixture."""
    path.write_bytes(as_bytes(mixture))


def other(path: Path) -> None:
    """Write another posterior of the same mixture."""
    path.write_bytes(netcdf(mixture(seed=2)))


def of_network(path: Path) -> None:
    """Write the posterior of a network."""
    path.write_bytes(as_bytes(network))


def with_change(
    change: Change, tree: Callable[[], xr.DataTree] = mixture
) -> Callable[[Path], None]:
    """Return a function that writes an invalid posterior."""

    def write(path: Path) -> None:
        path.write_bytes(netcdf(changed(tree(), change)))

    return write


def with_values(name: str, make: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    """Return a function that writes a posterior with different draws of one variable, in the same shape."""

    def change(groups: dict[str, xr.Dataset], _: dict[str, Any]) -> None:
        variable = groups["posterior"][name]
        groups["posterior"][name] = (variable.dims, make(variable.values.copy()))

    return with_change(change)


def with_attribute(
    name: str, value: Any, tree: Callable[[], xr.DataTree] = mixture
) -> Callable[[Path], None]:
    """Return a function that writes a posterior with one root attribute replaced."""
    return with_change(lambda _, attributes: attributes.update({name: value}), tree)


def with_posterior(make: Callable[[xr.Dataset], xr.Dataset]) -> Callable[[Path], None]:
    """Return a function that writes a posterior with a changed group of draws and without statistics."""

    def change(groups: dict[str, xr.Dataset], _: dict[str, Any]) -> None:
        groups["posterior"] = make(groups["posterior"])
        groups.pop("sample_stats")

    return with_change(change)


def points(**arrays: Any) -> Callable[[Path], None]:
    """Return a function that writes arrays with `numpy.savez`."""

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, **arrays)

    return write
