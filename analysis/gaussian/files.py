"""Fits in files: NetCDF with the group `gaussian`, and the source's data groups next to it.

Convention: all numbers stand as float64 arrays, bit by bit as they were; what is words stands as JSON in the
attribute `gaussian`, and the source's attributes next to that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError, OnebasinError
from onebasin.base.files import netcdf
from onebasin.base.files.outputs import claim
from onebasin.base.jsonable import parse_json

from .estimation import Factors, Spectral, Structure
from .gaussian import GaussianFit
from .layout import Variable, VariableLayout

GROUP = "gaussian"
_DIMS = {
    "vectors": ("param", "rank"),
    "values": ("rank",),
    "rest": (),
    "loadings": ("param", "rank"),
    "unique": ("param",),
}
"""Axes of the parts of a structure."""


class GaussianFileError(OnebasinError, RuntimeError):
    """A file of a fit that cannot be written or read."""


def to_dataset(fit: GaussianFit) -> xr.Dataset:
    """Return a fit as a dataset, without its source's data."""
    variables: dict[str, Any] = {"loc": ("param", fit.loc), "scale": ("param", fit.scale)}
    for part in fields(fit.structure):
        variables[part.name] = (_DIMS[part.name], getattr(fit.structure, part.name))
    for dim, labels in fit.layout.coords.items():
        variables[f"coordinate_{dim}"] = (f"entry_{dim}", labels)
    words = {
        "covariance": fit.covariance,
        "settings": dict(fit.settings),
        "variables": [asdict(variable) for variable in fit.layout.variables],
    }
    return xr.Dataset(variables, attrs={**fit.attributes, GROUP: json.dumps(words)})


def from_dataset(dataset: xr.Dataset, data: Mapping[str, xr.Dataset] | None = None) -> GaussianFit:
    """Read back what `to_dataset` made; refuse a dataset of another kind, or one that lacks a part."""
    if GROUP not in dataset.attrs:
        raise ArgumentError(f"`dataset` has no attribute `{GROUP}`; give what `to_dataset` made.")
    words = parse_json(dataset.attrs[GROUP])
    variables = tuple(
        Variable(each["name"], tuple(each["shape"]), tuple(each["dims"]), each["positive"])
        for each in words["variables"]
    )
    coordinates = [str(name) for name in dataset if str(name).startswith("coordinate_")]
    coords = {name.removeprefix("coordinate_"): dataset[name].values for name in coordinates}
    kind: type[Structure] = Factors if "loadings" in dataset else Spectral
    parts: Any = {part.name: _array(dataset, part.name) for part in fields(kind)}
    if kind is Spectral:
        parts["rest"] = float(parts["rest"])
    attributes = {name: value for name, value in dataset.attrs.items() if name != GROUP}
    return GaussianFit(
        covariance=words["covariance"],
        layout=VariableLayout(variables, coords),
        loc=_array(dataset, "loc"),
        scale=_array(dataset, "scale"),
        structure=kind(**parts),
        settings=words["settings"],
        attributes=attributes,
        data=dict(data or {}),
    )


def save_gaussian(fit: GaussianFit, path: str | Path, *, force: bool = False) -> Path:
    """Write a fit as NetCDF, its source's data included; the file appears whole or not at all.

    Raises
    ------
    GaussianFileError
        If the file exists and `force` is false, is no plain file, or its folder cannot be written to; `InUse` if
        somebody else is writing it, `WriteError` if it cannot be written, such as on a full disk.
    """
    tree = xr.DataTree.from_dict({GROUP: to_dataset(fit), **fit.data})
    with claim(Path(path), force=force, error=GaussianFileError) as output:
        return netcdf.write_tree(tree, output, new=not force)


def load_gaussian(path: str | Path) -> GaussianFit:
    """Read a fit that `save_gaussian` wrote, into memory, with arrays equal to the saved ones, bit by bit.

    Raises
    ------
    GaussianFileError
        If the file does not exist, is no NetCDF file or holds no fit.
    """
    tree = netcdf.read_tree(Path(path), GROUP, error=GaussianFileError, writer="`save_gaussian`")
    groups = {name: child.to_dataset() for name, child in tree.children.items()}
    try:
        return from_dataset(groups.pop(GROUP), groups)
    except ValueError as error:
        raise GaussianFileError(f"{path} holds no whole fit: {error}") from error


def _array(dataset: xr.Dataset, name: str) -> np.ndarray:
    if name not in dataset:
        raise ArgumentError(f"`dataset` lacks {name}; give what `to_dataset` made, whole.")
    return dataset[name].values
