"""Write trees of datasets to NetCDF files, completely or not at all, and read them into memory or lazily.

A lazily read array stays in its file until it is used or copied, piece by piece, to another file.

The size that a file claims to have is checked before anything is allocated. A small file can claim an array of any
size, with chunks that were never written, values that compress a thousandfold, or only a header. A claim is rejected if
it does not fit into memory, or if no file of that size could hold the values.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore
from xarray.backends.common import ArrayWriter

from ..errors import ArgumentError, OnebasinError, nearby
from ..machine import in_words, memory
from .writing import Seal, examine, sealing

_HARMLESS = 256 * 2**20
"""Number of bytes that any file may claim."""
_MOST_COMPRESSED = 1100
"""Maximum compression: Deflate, used in HDF5 and zip files, shrinks data at most 1032-fold."""
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


class ClaimError(OnebasinError, ValueError):
    """Raised when a file claims too much or is unsafe to read; the message completes a sentence after its name."""


def check_claim(path: Path, claimed: int, *, size: int | None = None) -> None:
    """Raise `ClaimError` if a file claims more bytes of values than it can hold, or than fit into memory.

    `size` is the size on disk, which must be given for a folder.
    """
    size = path.stat().st_size if size is None else size
    if claimed > _HARMLESS and claimed > _MOST_COMPRESSED * size:
        raise ClaimError(
            f"is damaged: it declares {in_words(claimed)} of values in only {size} bytes. Use another copy"
        )
    if claimed > (most := memory()):
        raise ClaimError(
            f"contains {in_words(claimed)} of values, more than the available memory of {in_words(most)}: free some "
            "memory"
        )


def check_hdf5(path: Path) -> None:
    """Raise `ClaimError` if an HDF5 file claims too much, has circular groups, or refers to other files."""
    with h5py.File(path) as file:
        claimed, seen = 0, {h5py.h5o.get_info(file.id).addr}

        def add(name: str, link: object) -> str | None:  # HDF5 calls it, so it must not raise.
            nonlocal claimed
            if not isinstance(link, h5py.HardLink):
                return "has links to other files, which NetCDF does not allow"
            found = file[name]
            if isinstance(found, h5py.Group):
                place = h5py.h5o.get_info(found.id).addr
                if place in seen:
                    return "has groups that contain themselves"
                seen.add(place)
            elif isinstance(found, h5py.Dataset):
                if found.external or found.is_virtual:
                    return "takes values from other files, which NetCDF does not allow"
                own = found.attrs.get("NAME")
                # NetCDF writes the length of an axis as a dataset, which is never read.
                if not (isinstance(own, bytes) and own.startswith(_NO_VARIABLE)):
                    claimed += math.prod(found.shape or ()) * found.dtype.itemsize

            return None

        if wrong := file.visititems_links(add):
            raise ClaimError(wrong)
    check_claim(path, claimed)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a ``.npz`` file, without unpickling.

    Raise `ClaimError` if the file claims too much, and `ArgumentError` if it is damaged or contains other objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_claim(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError):
        raise
    except Exception as error:  # zipfile may raise any error for a damaged file.
        raise ArgumentError("is not an archive of plain arrays") from error


def write_tree(tree: xr.DataTree, path: Path, *, new: bool = False) -> Path:
    """Write a tree with a seal; `writing.replacing` explains `new` and the errors.

    Large arrays that are still in other files are copied piece by piece.
    """

    class ByPieces(ArrayWriter):
        def add(self, source: Any, target: Any, region: Any = None) -> None:
            if not isinstance(source, Later):
                super().add(source, target, region)
                return
            for place, values in source.pieces():
                target[place] = values

    with sealing(path, new=new) as part, Sink(part) as file, h5netcdf.File(file, "w") as whole:
        # This does the work of `DataTree.to_netcdf`, also for variables in files, and without Dask.
        root = H5NetCDFStore(whole, mode="w")
        for node in tree.subtree:
            store = root if node is tree else root.get_child_store(node.path)
            dataset = node.to_dataset(inherit=node is tree)
            for name, variable in dataset.data_vars.items():
                large = is_in_file(variable) and variable.nbytes > PIECE
                if large and variable.dtype.kind in "biufc":
                    dataset[name] = variable.copy(data=Later(variable))
            dataset.dump_to_store(store, writer=ByPieces())
    return path


def read_tree(
    path: Path, group: str | None, *, error: type[Exception], writer: str, lazy: bool = False
) -> xr.DataTree:
    """Read a tree, which must contain `group` if it is given; if `lazy`, arrays are read when they are used.

    Raise `error` if the file does not exist, is damaged or not NetCDF, or lacks the group. The message says that
    `writer` writes such files.
    """
    wanted = f"`path` must name a file that {writer} wrote, but {path}"
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist or is not a file"
        what = "is a link to a file that does not exist" if path.is_symlink() else what
        raise error(f"{wanted} {what}.{nearby(path)}")
    try:
        seal = examine(path)
        if seal is Seal.DAMAGED:
            raise ClaimError(
                "is damaged: its content has changed since the file was written. Use another copy, or create the "
                "file again"
            )
        check_hdf5(path)
        if lazy:
            tree = open_tree(path)
            if seal is Seal.UNSEALED:
                for node in tree.subtree:  # Find damage now, not at the first use.
                    for variable in node.data_vars.values():
                        for piece in pieces(variable) if variable.ndim else [variable]:
                            _ = piece.values
        else:
            with open_tree(path) as opened:
                tree = loaded(opened)
    except ClaimError as reason:
        raise error(f"{wanted} {reason}.") from None
    except PermissionError as reason:
        raise error(
            f"{wanted} cannot be read, because you do not have permission. Ask the owner of the file for permission."
        ) from reason
    except Exception as reason:  # Libraries may raise any error for a damaged file.
        raise error(
            f"{wanted} is not a readable NetCDF file: it is truncated or damaged, or has a different format. Use "
            "another copy."
        ) from reason
    if group is not None and group not in tree.children:
        raise error(f"{wanted} has no group `{group}`. Give a file that has this group.")
    return tree


def open_tree(path: Path) -> xr.DataTree:
    """Open a NetCDF file lazily; closing the tree closes the file."""
    return xr.open_datatree(path, engine="h5netcdf", cache=False)


class Sink(io.FileIO):
    """A new file to which HDF5 can write even if the disk becomes full.

    After a failed write, HDF5 cannot close its file either, and crashes the process at its end. A `Sink` accepts every
    write. It raises the first error when it is closed, after HDF5 has closed its file.
    """

    _error: OSError | None = None

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")

    def readinto(self, buffer: Any) -> int:
        """Read bytes, with zeros for those that could not be written."""
        view = memoryview(buffer).cast("B")
        read = super().readinto(view)
        if self._error is not None:
            view[read:] = bytes(len(view) - read)
            read += len(view) - read
        return read

    def write(self, data: Any) -> int:
        """Write all bytes, or remember the error."""
        view = memoryview(data).cast("B")
        end, done = self.tell() + len(view), 0
        while self._error is None and done < len(view):
            with self._remembering():
                done += super().write(view[done:])
        self.seek(end)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or remember the error."""
        wanted = self.tell() if size is None else size
        with self._remembering():
            super().truncate(wanted)
        return wanted

    def close(self) -> None:
        """Close the file and raise the first error of a write."""
        if self.closed:
            return
        with self._remembering():
            super().close()
        if self._error is not None:
            raise self._error

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._error = self._error or error


PIECE: int = 2**22
"""Number of bytes that are read or written at a time."""


def is_in_file(variable: xr.DataArray) -> bool:
    """Check whether a variable's numbers are still in a file."""
    return not variable.variable._in_memory  # xarray has no public name for it.


def pieces(variable: xr.DataArray) -> Iterator[xr.DataArray]:
    """Cut a variable along its first axis into pieces of about `PIECE` bytes."""
    step = max(1, len(variable) * PIECE // max(variable.nbytes, 1))
    for first in range(0, len(variable), step):
        yield variable[first : first + step]


def loaded(tree: xr.DataTree) -> xr.DataTree:
    """Read a tree into memory, including variables that xarray's `load` skips because a group has the same name."""
    for node in tree.load().subtree:
        for variable in node.variables.values():
            variable.load()
    return tree


class Later:
    """A variable that is copied between files; xarray encodes it without reading it."""

    __array_ufunc__ = None

    def __init__(self, variable: xr.DataArray, dtype: np.typing.DTypeLike | None = None) -> None:
        self.variable = variable
        self.dtype = np.dtype(dtype or variable.dtype)
        self.shape, self.ndim, self.size = variable.shape, variable.ndim, variable.size

    def __array_function__(self, *_: Any) -> Any:
        """Reject NumPy functions, which would read the whole array."""
        return NotImplemented

    def astype(self, dtype: np.typing.DTypeLike, **_: Any) -> Later:
        """Return the same variable, to be written as another type."""
        return Later(self.variable, dtype)

    def pieces(self) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        """Yield the position and the values of each piece, such as some draws of one chain."""
        starts = []
        for axis, length in enumerate(self.shape):
            beyond = math.prod(self.shape[axis + 1 :]) * self.variable.dtype.itemsize
            step = min(length, max(1, PIECE // max(beyond, 1)))
            starts.append([slice(i, i + step) for i in range(0, length, max(step, 1))])
        for place in product(*starts):
            yield place, self.variable[place].values.astype(self.dtype, copy=False)
