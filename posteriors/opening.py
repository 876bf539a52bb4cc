"""The door for every posterior in files: which format it is of is seen in its content, then in its name."""

from __future__ import annotations

import glob
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onebasin.base.errors import FormatError, PosteriorFileError
from onebasin.base.files import netcdf

from . import schema, stan_csv, tables, zarr_store
from .csv_blocks import GZIP
from .join import join
from .naming import expanded, is_csv
from .schema import adopted

if TYPE_CHECKING:
    import xarray as xr

_WRITER = "onebasin or ArviZ"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC = b"CDF"
_HEAD = 512


def open_tree(paths: Sequence[Path], *, lazy: bool = False, argument: str = "path") -> xr.DataTree:
    """Read the posterior that files or stores hold; of several, their chains become those of one posterior.

    If `lazy`, arrays are read when they are asked for, until the tree is closed. Files that hold no posterior are
    refused with a `PosteriorFileError`, which calls them `argument`.
    """
    files = [file for path in paths for file in expanded(path)]
    try:
        tree = _read(files, lazy=lazy)
    except FormatError as fault:
        raise PosteriorFileError(f"`{argument}` must name a posterior, and {fault}") from fault
    except PosteriorFileError as fault:
        raise PosteriorFileError(str(fault).replace("`path`", f"`{argument}`", 1)) from fault
    except PermissionError as fault:
        raise PosteriorFileError(
            f"`{argument}` must name a posterior, and {fault.filename or files[0]} may not be read; ask for the "
            "permission."
        ) from fault
    return adopted(tree)


def _read(files: Sequence[Path], *, lazy: bool) -> xr.DataTree:
    if not files:
        raise FormatError("nothing", "was given: name a file")
    if len(files) == 1:
        return _read_one(files[0], lazy=lazy)
    for file in files:
        if not file.is_file() and not (file.is_dir() and zarr_store.is_store(file)):
            what = "is a folder" if file.is_dir() else "does not exist or is no file"
            raise FormatError(file, what)
    seen: dict[str, Path] = {}
    for file in files:
        if seen.setdefault(os.path.realpath(file), file) is not file:
            raise FormatError(file, "is given twice: give every chain once")
    if all(map(is_csv, files)):
        chains = list(map(stan_csv.ChainFile.of, files))
        if not any(_says(chain, stan_csv.CHAIN_COLUMNS) for chain in chains):
            return stan_csv.read(chains, lazy=lazy)
    return join([_read_one(file, lazy=lazy) for file in files], files, lazy=lazy)


def _read_one(path: Path, *, lazy: bool) -> xr.DataTree:
    """Read a file or store: by its content, by its name where that leaves a doubt."""
    if path.is_dir():
        if zarr_store.is_store(path):
            return _with_draws(zarr_store.read(path), path)
        raise FormatError(path, "is a folder that is no Zarr store and holds no CSV files")
    if not path.is_file() and glob.has_magic(str(path)):
        raise FormatError(path, "is a pattern that no file matches")
    if path.suffix == ".stan" and path.is_file():
        raise FormatError(path, "is a Stan program: sample it, and give the file of its draws")
    head = _CLASSIC  # what is missing, its reader says so
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(_HEAD)
    if head.startswith(tables.PARQUET):
        return tables.read_parquet(path)
    if not head.startswith((_HDF5, _CLASSIC)):
        if zipfile.is_zipfile(path):
            try:
                with zipfile.ZipFile(path) as archive:
                    place = zarr_store.place_in(archive)
            except Exception as error:  # of what anyone may have written, zipfile raises anything
                raise FormatError(
                    path, "is no zip archive that can be read: it is cut short or damaged"
                ) from error
            if place is None:
                raise FormatError(path, "is a zip archive that holds no Zarr store")
            return _with_draws(zarr_store.read(path, place=place), path)
        if is_csv(path) or head.startswith(GZIP) or b"stan_version" in head:
            table = stan_csv.ChainFile.of(path)
            if _says(table, (*stan_csv.CHAIN_COLUMNS, *stan_csv.ORDER_COLUMNS)):
                table.check()
                return tables.read_csv(table)
            return stan_csv.read([table], lazy=lazy)
    tree = netcdf.read_tree(path, None, error=PosteriorFileError, writer=_WRITER, lazy=lazy)
    return _with_draws(tree, path)


def _says(file: stan_csv.ChainFile, columns: tuple[str, ...]) -> bool:
    """Tell whether a table says of every row which chain, or which draw, it is of, in one of these columns."""
    return not file.header.is_stans and any(name in file.columns for name in columns)


def _with_draws(tree: xr.DataTree, path: Path) -> xr.DataTree:
    """Return a tree with its group of draws, or make one of a dataset that was written without a group."""
    if schema.POSTERIOR in tree.children:
        return tree
    alone = tree.to_dataset()
    if not set(schema.SAMPLE_DIMS) <= set(alone.sizes):
        tree.close()
        raise FormatError(path, f"holds no group '{schema.POSTERIOR}', the draws of a posterior")
    made = type(tree).from_dict({schema.POSTERIOR: alone})
    made.set_close(tree.close)
    return made
