"""Write posteriors in the format that the file's suffix names, atomically, with a notice of any omitted content.

Zarr stores are folders. onebasin reads formats 2 and 3, and writes format 2, which every version of Zarr can read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_class, check_path, checks_arguments
from onebasin.base.errors import ArgumentError, FormatError, PosteriorFileError
from onebasin.base.files import netcdf
from onebasin.base.files.netcdf import ClaimError, check_claim, loaded
from onebasin.base.files.writing import claim, replacing
from onebasin.base.machine import EXTRAS, is_installed, lacks
from onebasin.base.run_log import notice

from . import schema, tables

_MARKS = ("zarr.json", ".zgroup", ".zmetadata")
_ORDER = "onebasin_variables"
"""Attribute of a group with the order of its variables, which a store would otherwise lose."""


def is_store(folder: Path) -> bool:
    """Check whether a folder is a Zarr store."""
    return any((folder / mark).is_file() for mark in _MARKS)


def read_store(path: Path) -> xr.DataTree:
    """Read a store into memory."""
    _check_package()
    try:
        with (
            warnings.catch_warnings(action="ignore"),
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
    except Exception as error:  # The libraries may raise any error for a damaged store.
        raise FormatError(
            path,
            "is not a readable Zarr store: it is truncated or damaged, or has a different format",
        ) from error


def _write_store(tree: xr.DataTree, path: Path) -> None:
    _check_package()
    for node in tree.subtree:
        node.attrs[_ORDER] = [str(name) for name in node.data_vars]
    with warnings.catch_warnings(action="ignore"):
        tree.to_zarr(path, mode="w", consolidated=True, zarr_format=2)


def _check_package() -> None:
    if not is_installed(EXTRAS["zarr"]):
        raise PosteriorFileError(lacks("A Zarr store", "zarr"))


@dataclass(frozen=True)
class Format:
    """A format for writing posteriors."""

    name: str
    suffixes: tuple[str, ...]
    is_table: bool = False  # Whether it can store only draws and statistics.
    folder: bool = False  # Whether it is a folder of files.

    @property
    def replaces(self) -> Callable[[Path], bool] | None:
        """Function that tells whether a posterior may replace a folder; None if the format is a file."""
        return is_store if self.folder else None


NETCDF = Format("NetCDF", (".nc", ".nc4", ".netcdf", ".h5"))
_ZARR = Format("Zarr", (".zarr",), folder=True)
_CSV = Format("CSV", (".csv",), is_table=True)
_PARQUET = Format("Parquet", (".parquet",), is_table=True)
FORMATS = (NETCDF, _ZARR, _CSV, _PARQUET)


def format_of(path: Path, *, argument: str = "path") -> Format:
    """Return the format that belongs to a suffix, NetCDF if there is none; reject unknown suffixes."""
    name = path.name.lower()
    for form in reversed(FORMATS):
        if name.endswith(form.suffixes):
            return form
    if not path.suffix:
        return NETCDF
    known = ", ".join(form.suffixes[0] for form in FORMATS)
    raise ArgumentError(
        f"`{argument}` is {path}, but onebasin cannot write {path.suffix} files: use one of the suffixes {known}."
    )


def write_tree(tree: xr.DataTree, path: Path, *, new: bool = False) -> Path:
    """Write a posterior in the format that the suffix names, with a notice of content that the format cannot store.

    See `base.files.writing.replacing` for `new` and for errors.
    """
    form = format_of(path)
    for node in () if form is NETCDF else tree.subtree:
        for name, variable in node.data_vars.items():
            if variable.dtype.kind == "c":
                raise FormatError(
                    path,
                    f"cannot store the complex numbers of `{name}`: store their real and imaginary parts as two "
                    "variables instead",
                )
    if form.is_table and not tables.real_draws(tree, schema.POSTERIOR):
        raise FormatError(
            path,
            "cannot be written as a table, because the posterior has no real-valued variable: "
            "use .nc or .zarr",
        )
    try:
        if form is NETCDF:
            netcdf.write_tree(plain(tree), path, new=new)
        else:
            with replacing(path, new=new) as part:
                if form.is_table:
                    tables.write(tree, part, parquet=form is _PARQUET)
                else:
                    _write_store(plain(tree), part)
    except (TypeError, NotImplementedError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            path,
            f"cannot be written as {form.name}, because this format does not support the type of an attribute or "
            "coordinate: convert that attribute or coordinate to text or numbers",
        ) from error
    if form.is_table and (lost := list(_lost_by_table(tree))):
        notice(f"{path} leaves out content that {form.name} cannot store: {'; '.join(lost)}")
    return path


def plain(tree: xr.DataTree) -> xr.DataTree:
    """Return a tree for NetCDF and Zarr, without foreign encodings and with attributes as text or numbers."""
    groups: dict[str, xr.Dataset] = {}
    for node in tree.subtree:
        held = node.to_dataset(inherit=False).drop_encoding()
        held.attrs = _encoded(held.attrs)
        for name in held.variables:
            held[name].attrs = _encoded(held[name].attrs)
        groups[node.path] = held
    return xr.DataTree.from_dict(groups)


def _encoded(attributes: Any) -> dict[str, Any]:
    """Encode attributes for NetCDF; arrays, and lists of strings or numbers, stay unchanged."""
    out = {}
    for name, value in attributes.items():
        kept = isinstance(value, np.ndarray | np.generic)
        if isinstance(value, list | tuple):
            kept = bool(value) and np.asarray(value).dtype.kind in "biufUS"
        out[str(name)] = value if kept else schema.encode(value)
    return out


def _lost_by_table(tree: xr.DataTree) -> Iterator[str]:
    """List the content of a posterior that a table cannot store."""
    held = (schema.POSTERIOR, schema.SAMPLE_STATS)
    others = [name for name in tree.children if name not in held]
    if others:
        yield f"group(s) {', '.join(others)}"
    for group in held:
        if group in tree.children:
            kept = tables.real_draws(tree, group)
            left = [
                str(name)
                for name in tree[group].data_vars
                if name not in kept or (group == schema.SAMPLE_STATS and kept[name].ndim > 2)
            ]
            if left:
                yield f"variable(s) {', '.join(left)}"
    if tree.attrs:
        yield f"{len(tree.attrs)} attributes"
    posterior, named = tree[schema.POSTERIOR], set()
    for name, variable in posterior.data_vars.items():
        for axis, dim in enumerate(d for d in variable.dims if d not in schema.SAMPLE_DIMS):
            labels = posterior.coords[dim].values if dim in posterior.coords else None
            numbers = labels is None or np.array_equal(labels, np.arange(posterior.sizes[dim]))
            if dim != f"{name}_dim_{axis}" or not numbers:
                named.add(str(dim))
    if named:
        yield f"names or labels of axes ({', '.join(sorted(named))})"


@checks_arguments
def save(tree: xr.DataTree, path: str | Path, *, force: bool = False) -> Path:
    """Write a posterior in the format that the path's suffix names. The file is written completely or not at all.

    Parameters
    ----------
    tree : DataTree
        The posterior.
    path : path
        ``.nc`` is NetCDF and ``.zarr`` is Zarr: these store everything. ``.csv`` and ``.parquet``
        store draws and statistics; a notice names what they omit.
    force : bool
        Whether to replace an existing file.

    Returns
    -------
    pathlib.Path
        The path.

    Raises
    ------
    TypeError, ValueError
        If `tree` is not a posterior, `path` is not a path or has an unknown suffix, or the format cannot store the
        posterior.
    PosteriorFileError
        If the file exists and `force` is false, it is not a plain file, or its folder is not writable.
    InUse
        If another process is writing it.
    WriteError
        If it cannot be written, such as on a full disk.

    Examples
    --------
    >>> ob.save(posterior, "run.nc", force=True).name
    'run.nc'
    """
    check_class("tree", tree, xr.DataTree, remedy="give what an inference method returned")
    if schema.POSTERIOR not in tree.children:
        raise ArgumentError(
            f"`tree` has no group `{schema.POSTERIOR}`: give the tree that an inference method returned."
        )
    place = check_path("path", path)
    form = format_of(place)
    with claim(place, force=force, error=PosteriorFileError, replaces=form.replaces) as output:
        return write_tree(tree, output, new=not force)
