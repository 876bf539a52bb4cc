"""Zarr stores, which are folders. They are read in formats 2 and 3, and written in format 2, which all read."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from onebasin.base.errors import FormatError, PosteriorFileError
from onebasin.base.extras import EXTRAS, is_installed, lacks
from onebasin.base.files.pieces import loaded
from onebasin.base.files.sizes import ClaimError, check_claim

if TYPE_CHECKING:
    import xarray as xr

_MARKS = ("zarr.json", ".zgroup", ".zmetadata")
_ORDER = "onebasin_variables"
"""Attribute of a group that we wrote: its variables in order, which the store does not keep."""


def is_store(folder: Path) -> bool:
    """Tell whether a folder is a Zarr store."""
    return any((folder / mark).is_file() for mark in _MARKS)


def read(path: Path) -> xr.DataTree:
    """Read a store into memory."""
    import xarray as xr

    _check_package()
    try:
        with (
            warnings.catch_warnings(action="ignore"),  # of formats and engines
            xr.open_datatree(path, engine="zarr", consolidated=False, chunks=None) as tree,
        ):
            size = sum(file.stat().st_size for file in path.rglob("*"))
            check_claim(path, sum(node.nbytes for node in tree.subtree), size=size)
            for node in tree.subtree:
                held = node.to_dataset(inherit=False)
                order = list(held.attrs.pop(_ORDER, sorted(held.data_vars, key=str)))
                node.dataset = held[order].assign_attrs(held.attrs)
            return loaded(tree)
    except ClaimError as error:
        raise FormatError(path, str(error)) from None
    except Exception as error:  # of what anyone may have written, the libraries raise anything
        raise FormatError(
            path, "is no Zarr store that can be read: it is cut short, damaged or of another kind"
        ) from error


def write(tree: xr.DataTree, path: Path) -> None:
    """Write a store; see `writing.write_tree`."""
    _check_package()
    for node in tree.subtree:
        node.attrs[_ORDER] = [str(name) for name in node.data_vars]
    with warnings.catch_warnings(action="ignore"):
        tree.to_zarr(path, mode="w", consolidated=True, zarr_format=2)


def _check_package() -> None:
    if not is_installed(EXTRAS["zarr"]):
        raise PosteriorFileError(lacks("A Zarr store", "zarr"))
