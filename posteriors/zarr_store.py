"""Zarr stores: folders and zip archives. They are read in formats 2 and 3, and written in format 2, which all read."""

from __future__ import annotations

import math
import struct
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import FormatError, PosteriorFileError
from onebasin.base.extras import EXTRAS, is_installed, lacks
from onebasin.base.files.claims import ClaimError, check_claim
from onebasin.base.files.pieces import is_read_later, loaded, rows_of_a_piece

if TYPE_CHECKING:
    import xarray as xr

_MARKS = ("zarr.json", ".zgroup", ".zmetadata")
_FORMAT = 2
_BLOSC = struct.Struct("<4B3I")
"""A chunk's header: two versions, flags, size of an entry; bytes of the whole, of a block, of the chunk itself."""
_ORDER = "onebasin_variables"
"""Attribute of a group that we wrote: its variables, in order."""


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


def read(path: Path, *, lazy: bool, place: str = "") -> xr.DataTree:
    """Read a store, a folder or what begins at `place` in an archive; if `lazy`, arrays as they are asked for."""
    import xarray as xr

    _check_package()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formats and engines, which are no user's affair
            store: Any = path
            if not path.is_dir():
                from zarr.storage import ZipStore

                with zipfile.ZipFile(path) as archive:
                    check_claim(path, sum(member.file_size for member in archive.infolist()))
                    if (part := archive.testzip()) is not None:
                        raise FormatError(
                            path, f"is damaged: its part {part} is not what was written"
                        )
                store = ZipStore(path, mode="r")
            _check(path, store, place)
            opened = xr.open_datatree(
                store,
                engine="zarr",
                group=place or None,
                consolidated=False,
                chunks=None,
                cache=not lazy,
            )
            for node in opened.subtree:  # as we wrote them, or by name: folders list in any order
                held = node.to_dataset(inherit=False)
                order = {name: i for i, name in enumerate(held.attrs.pop(_ORDER, ()))}
                names = sorted(held.data_vars, key=lambda n: (order.get(n, len(order)), str(n)))
                node.dataset = held.drop_vars(names).assign({name: held[name] for name in names})
            if lazy:
                return opened
            with opened:
                return loaded(opened)
    except ClaimError as error:
        raise FormatError(path, str(error)) from None
    except FormatError:
        raise
    except Exception as error:  # of what anyone may have written, the libraries raise anything
        raise FormatError(
            path, "is no Zarr store that can be read: it is cut short, damaged or of another kind"
        ) from error


def _check(path: Path, store: Any, place: str) -> None:
    """Refuse a store that claims more than it can hold."""
    import zarr

    root = zarr.open_group(store, mode="r", path=place or None, use_consolidated=False)
    arrays = [array for _, array in root.members(max_depth=None) if isinstance(array, zarr.Array)]
    claimed = sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays if array.shape)
    size = sum(part.stat().st_size for part in path.rglob("*")) if path.is_dir() else None
    check_claim(path, claimed, size=size)
    for array in arrays:
        if "Blosc" in repr(array.compressors):
            most = math.prod(array.chunks) * array.dtype.itemsize
            for size_of_chunk, head in _chunks(path, PurePosixPath(array.path)):
                # The library believes a chunk's header, and ends the process where it is not true.
                whole = block = compressed = -1
                if len(head) == _BLOSC.size:
                    *_, whole, block, compressed = _BLOSC.unpack(head)
                if (compressed, whole) != (size_of_chunk, most) or not 0 < block <= max(whole, 1):
                    raise FormatError(
                        path, f"is damaged: a part of {array.path} is not what was written"
                    )
        if path.is_dir() and not array.shape:  # a single number has no chunks
            array[...]
        elif path.is_dir():  # the parts of an archive have checksums
            # A few rows at a time, nothing kept: what cannot be read is known before it is asked for.
            for first in range(0, array.shape[0], array.chunks[0] or 1):
                array[first : first + (array.chunks[0] or 1)]


def _chunks(path: Path, place: PurePosixPath) -> Iterator[tuple[int, bytes]]:
    """Sizes and beginnings of an array's files."""
    if path.is_dir():
        for file in (path / place).rglob("[!.]*"):
            if file.is_file() and file.name != "zarr.json":
                with file.open("rb") as stream:
                    yield file.stat().st_size, stream.read(_BLOSC.size)
        return
    with zipfile.ZipFile(path) as archive:
        for member in (each for each in archive.infolist() if not each.is_dir()):
            own = PurePosixPath(member.filename)
            if own.is_relative_to(place) and own.name[:1] != "." and own.name != "zarr.json":
                with archive.open(member) as stream:
                    yield member.file_size, stream.read(_BLOSC.size)


def _check_package() -> None:
    if not is_installed(EXTRAS["zarr"]):
        raise PosteriorFileError(lacks("A Zarr store", "zarr"))


def write(tree: xr.DataTree, path: Path, *, zipped: bool) -> None:
    """Write a store, as a folder or an archive; see `writing.write_tree`."""
    _check_package()
    import dask
    from zarr.storage import ZipStore

    with (
        warnings.catch_warnings(),
        dask.config.set(scheduler="synchronous"),
        ZipStore(path, mode="w", compression=zipfile.ZIP_STORED)
        if zipped
        else nullcontext(path) as store,
    ):
        warnings.simplefilter("ignore")
        # Dask takes large variables that are in files from there one piece after the other.
        ordered = tree.map_over_datasets(
            lambda dataset: dataset.assign(
                {
                    name: v.chunk(
                        dict(zip(v.dims, rows_of_a_piece(v), strict=True)), inline_array=True
                    )
                    for name, v in dataset.data_vars.items()
                    if is_read_later(v)
                }
            )
        )
        for node in ordered.subtree:
            node.attrs[_ORDER] = [str(name) for name in node.data_vars]
        ordered.to_zarr(store, mode="w", consolidated=True, zarr_format=_FORMAT)
