"""Zarr stores: folders and zip archives. They are read in formats 2 and 3, and written in format 2, which all read."""

from __future__ import annotations

import warnings
import zipfile
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

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


def place_in(archive: zipfile.ZipFile) -> str | None:
    """Return the folder in an archive where its store begins: empty for its root; None without a store."""
    roots = [
        PurePosixPath(name).parent
        for name in archive.namelist()
        if PurePosixPath(name).name in _MARKS and not name.startswith("__MACOSX/")
    ]
    if not roots:
        return None
    root = min(roots, key=lambda folder: len(folder.parts))
    return "" if root == PurePosixPath(".") else str(root)


def read(path: Path, *, place: str = "") -> xr.DataTree:
    """Read a store into memory, a folder or what begins at `place` in an archive."""
    import xarray as xr

    _check_package()
    try:
        store: Any = path
        if not path.is_dir():
            from zarr.storage import ZipStore

            store = ZipStore(path, mode="r")
        with (
            warnings.catch_warnings(action="ignore"),  # of formats and engines
            xr.open_datatree(
                store, engine="zarr", group=place or None, consolidated=False, chunks=None
            ) as tree,
        ):
            check_claim(path, sum(node.nbytes for node in tree.subtree), size=_size(path))
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


def write(tree: xr.DataTree, path: Path, *, zipped: bool) -> None:
    """Write a store, as a folder or an archive; see `writing.write_tree`."""
    _check_package()
    from zarr.storage import ZipStore

    for node in tree.subtree:
        node.attrs[_ORDER] = [str(name) for name in node.data_vars]
    archive = ZipStore(path, mode="w", compression=zipfile.ZIP_STORED) if zipped else None
    with warnings.catch_warnings(action="ignore"), archive or nullcontext(path) as store:
        tree.to_zarr(store, mode="w", consolidated=True, zarr_format=2)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _check_package() -> None:
    if not is_installed(EXTRAS["zarr"]):
        raise PosteriorFileError(lacks("A Zarr store", "zarr"))
