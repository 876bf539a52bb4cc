"""The door for every posterior in files: which format it is of is seen in its content, then in its name."""

from __future__ import annotations

import glob
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onebasin.base.errors import PosteriorFileError
from onebasin.base.files import netcdf
from onebasin.base.files.faults import FormatError

from . import draws_csv, draws_json, schema, stan_csv, zarr_store
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
    """Read the posterior that files hold.

    Parameters
    ----------
    paths : sequence of Path
        A file or a store; or several, whose chains become those of one posterior.
    lazy : bool
        Whether arrays are read when they are asked for, until the tree is closed; otherwise into memory.
    argument : str
        What messages call them.

    Raises
    ------
    PosteriorFileError
        If they hold no posterior that can be read.
    """
    files = [file for path in paths for file in expanded(path)]
    try:
        _check_many(files)
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


def _check_many(files: Sequence[Path]) -> None:
    """Refuse several files that cannot be chains of one posterior."""
    if not files:
        raise FormatError("nothing", "was given: name a file")
    if len(files) == 1:
        return
    for file in files:
        if not file.is_file() and not (file.is_dir() and zarr_store.is_store(file)):
            what = "is a folder" if file.is_dir() else "does not exist or is no file"
            raise FormatError(file, what)
    seen: dict[Path, Path] = {}
    for file in files:
        if seen.setdefault(file.resolve(), file) is not file:
            raise FormatError(file, "is given twice: give every chain once")


def _read(files: Sequence[Path], *, lazy: bool) -> xr.DataTree:
    first = files[0]
    if len(files) > 1:
        if all(map(is_csv, files)):
            return stan_csv.read(list(map(stan_csv.ChainFile.of, files)), lazy=lazy)
        return join([_read([file], lazy=lazy) for file in files], files, lazy=lazy)
    if first.is_dir():
        if zarr_store.is_store(first):
            return _with_draws(zarr_store.read(first, lazy=lazy), first)
        raise FormatError(first, "is a folder that is no Zarr store and holds no CSV files")
    if not first.is_file():
        if glob.has_magic(str(first)):
            raise FormatError(first, "is a pattern that no file matches")
        return _netcdf(first, lazy=lazy)  # says so
    if _begins(first).startswith(GZIP):
        return _text(first, lazy=lazy)
    if zipfile.is_zipfile(first) and not _begins(first).startswith(_HDF5):
        return _zip(first, lazy=lazy)
    return _text(first, lazy=lazy) if _is_text(first) else _netcdf(first, lazy=lazy)


def _netcdf(path: Path, *, lazy: bool) -> xr.DataTree:
    return netcdf.read_tree(
        path, schema.POSTERIOR, error=PosteriorFileError, writer=_WRITER, lazy=lazy
    )


def _zip(path: Path, *, lazy: bool) -> xr.DataTree:
    try:
        with zipfile.ZipFile(path) as archive:
            place = zarr_store.place_in(archive)
    except Exception as error:  # of bytes that anyone may have written, zipfile raises anything
        raise FormatError(
            path, "is no zip archive that can be read: it is cut short or damaged"
        ) from error
    if place is None:
        return draws_json.read(path)
    return _with_draws(zarr_store.read(path, lazy=lazy, place=place), path)


def _text(path: Path, *, lazy: bool) -> xr.DataTree:
    if not is_csv(path) and (
        path.suffix.lower() == ".json" or _begins(path).lstrip()[:1] in (b"[", b"{")
    ):
        return draws_json.read(path)
    file = stan_csv.ChainFile.of(path)
    if draws_csv.is_table(file):
        return draws_csv.read(file, lazy=lazy)
    return stan_csv.read([file], lazy=lazy)


def _is_text(path: Path) -> bool:
    """Whether a file is taken for CSV or JSON: by its name, or as its content is nothing else."""
    suffix = path.suffix.lower()
    head = _begins(path)
    if head.startswith((_HDF5, _CLASSIC)):
        return False
    if suffix in (".csv", ".tsv", ".json"):
        return True
    return suffix not in (".nc", ".nc4", ".h5", ".zarr", ".zip") and (
        b"stan_version" in head or head.lstrip()[:1] in (b"[", b"{")
    )


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _with_draws(tree: xr.DataTree, path: Path) -> xr.DataTree:
    if schema.POSTERIOR not in tree.children:
        tree.close()
        raise FormatError(path, f"holds no group `{schema.POSTERIOR}`")
    return tree
