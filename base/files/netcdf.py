"""Trees of datasets in NetCDF files: written whole or not at all, even on a full disk; read into memory or lazily.

Large arrays stay in their files until they are asked for, or go elsewhere a piece at a time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5netcdf
import numpy as np

from ..errors import nearby
from .sizes import ClaimError, check_hdf5
from .writing import Seal, examine, sealing

if TYPE_CHECKING:
    import xarray as xr


def write_tree(tree: xr.DataTree, path: Path, *, new: bool = False) -> Path:
    """Write a tree, with its seal; the file appears whole or not at all.

    It takes the place of what was there, but with `new`: see `writing.replacing`, which also says what it raises. What
    of the tree is still in files goes from there to here a piece at a time.
    """
    from xarray.backends import H5NetCDFStore
    from xarray.backends.common import ArrayWriter

    class ByPieces(ArrayWriter):
        def add(self, source: Any, target: Any, region: Any = None) -> None:
            if not isinstance(source, Later):
                super().add(source, target, region)
                return
            for place, values in source.pieces():
                target[place] = values

    with sealing(path, new=new) as part, Sink(part) as file, h5netcdf.File(file, "w") as whole:
        # As `DataTree.to_netcdf`, but with variables that stay in their files, and without looking for Dask.
        root = H5NetCDFStore(whole, mode="w")
        for node in tree.subtree:
            store = root if node is tree else root.get_child_store(node.path)
            dataset = left_in_files(node.to_dataset(inherit=node is tree))
            dataset.dump_to_store(store, writer=ByPieces())
    return path


def read_tree(
    path: Path, group: str | None, *, error: type[Exception], writer: str, lazy: bool = False
) -> xr.DataTree:
    """Read a tree that has a group of this name, if one is requested; a file without a seal may be anybody's.

    It is read into memory, or, if `lazy`, stays in its file, and arrays are read piece by piece when they are asked
    for. A file that does not exist, is damaged or no NetCDF file, or has no such group is rejected with `error`; the
    message says that `writer` writes such files.
    """
    wanted = f"`path` must name a file that {writer} wrote, and {path}"
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist or is not a file"
        what = "is a link to a file that does not exist" if path.is_symlink() else what
        raise error(f"{wanted} {what}.{nearby(path)}")
    try:
        seal = examine(path)
        if seal is Seal.DAMAGED:
            raise ClaimError(
                "is damaged: its content differs from what was written; use another copy, or create it again"
            )
        check_hdf5(path)
        if lazy:
            tree = open_tree(path)
            if seal is Seal.UNSEALED:
                _go_through(tree)
        else:
            tree = load_tree(path)
    except ClaimError as reason:
        raise error(f"{wanted} {reason}.") from None
    except PermissionError as reason:
        raise error(f"{wanted} cannot be read: you lack the permission.") from reason
    except Exception as reason:  # libraries may raise anything for a file from an unknown writer
        raise error(
            f"{wanted} is not a NetCDF file that can be read: it is truncated, damaged or of another format."
        ) from reason
    if group is not None and group not in tree.children:
        raise error(f"{wanted} has no group `{group}`.")
    return tree


def _go_through(tree: xr.DataTree) -> None:
    """Read everything once, a piece at a time: what nobody has vouched for fails now or not at all."""
    for node in tree.subtree:
        for variable in node.variables.values():
            length = variable.shape[1] if variable.ndim > 1 else 1
            step = max(1, length * PIECE // max(variable.nbytes, 1))
            for row in range(variable.shape[0] if variable.ndim > 1 else 1):
                for first in range(0, length, step):
                    place = (row, slice(first, first + step)) if variable.ndim > 1 else ()
                    _ = variable[place].values


def load_tree(path: Path) -> xr.DataTree:
    """Read a NetCDF file of any groups into memory."""
    with open_tree(path) as opened:
        return loaded(opened)


def open_tree(path: Path) -> xr.DataTree:
    """Open a NetCDF file of any groups, to be read piece by piece; closing the tree closes it."""
    import xarray as xr  # here: what reads no trees does without

    return xr.open_datatree(path, engine="h5netcdf", cache=False)


class Sink(io.FileIO):
    """A new file that HDF5 can be given to write: it survives a full disk, which HDF5 does not.

    HDF5 that cannot write (no room, a quota, a broken disk) cannot close its file either, and crashes the process at
    the end. A `Sink` takes every write, keeps the first error to itself and raises it when it is closed, after HDF5 has
    closed its file in peace.
    """

    _error: OSError | None = None

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")

    def readinto(self, buffer: Any) -> int:
        """Read; what could not be written reads as zeros, for HDF5 to continue."""
        view = memoryview(buffer).cast("B")
        read = super().readinto(view)
        if self._error is not None:
            view[read:] = bytes(len(view) - read)
            read += len(view) - read
        return read

    def write(self, data: Any) -> int:
        """Write all of it, or remember why not."""
        view = memoryview(data).cast("B")
        end, done = self.tell() + len(view), 0
        while self._error is None and done < len(view):
            with self._remembering():
                done += super().write(view[done:])
        self.seek(end)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or remember why not."""
        wanted = self.tell() if size is None else size
        with self._remembering():
            super().truncate(wanted)
        return wanted

    def close(self) -> None:
        """Close the file; the first error that a write met is raised."""
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
"""Bytes that are read and written at a time; what is no larger is taken whole."""


def is_read_later(variable: xr.DataArray) -> bool:
    """Check whether a variable's numbers are still in a file, too many of them to be taken at once."""
    return (
        variable.nbytes > PIECE and not variable.variable._in_memory
    )  # xarray has no public name for it


def rows_of_a_piece(variable: xr.DataArray) -> list[int]:
    """Return the lengths of a piece along each axis: some of the first axes, such as some draws of one chain."""
    sizes: list[int] = []
    for axis, length in enumerate(variable.shape):
        beyond = prod(variable.shape[axis + 1 :]) * variable.dtype.itemsize
        sizes.append(min(length, max(1, PIECE // max(beyond, 1))))
    return sizes


def pieces(variable: xr.DataArray) -> Iterator[xr.DataArray]:
    """Go through a variable along its first axis, some of it at a time."""
    step = max(1, len(variable) * PIECE // max(variable.nbytes, 1))
    for first in range(0, len(variable), step):
        yield variable[first : first + step]


def loaded(tree: xr.DataTree) -> xr.DataTree:
    """Read a tree into memory, also variables that are called like a group, which xarray's `load` passes over."""
    for node in tree.load().subtree:
        for variable in node.variables.values():
            variable.load()
    return tree


class Later:
    """A variable that xarray encodes without reading it, on its way between files, perhaps as another type."""

    __array_ufunc__ = None

    def __init__(self, variable: xr.DataArray, dtype: np.typing.DTypeLike | None = None) -> None:
        self.variable = variable
        self.dtype = np.dtype(dtype or variable.dtype)
        self.shape, self.ndim, self.size = variable.shape, variable.ndim, variable.size

    def __array_function__(self, *_: Any) -> Any:
        """Reject functions of NumPy, which would read all of it."""
        return NotImplemented

    def astype(self, dtype: np.typing.DTypeLike, **_: Any) -> Later:
        """Have it written as another type."""
        return Later(self.variable, dtype)

    def pieces(self) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        """Go through it; gives the place and the numbers of each piece."""
        steps = zip(self.shape, rows_of_a_piece(self.variable), strict=True)
        starts = [[slice(i, i + step) for i in range(0, length, step)] for length, step in steps]
        for place in product(*starts):
            yield place, self.variable[place].values.astype(self.dtype, copy=False)


def left_in_files(dataset: xr.Dataset) -> xr.Dataset:
    """Give a dataset to write, whose large variables are not read for it."""
    return dataset.assign(
        {
            name: variable.copy(data=Later(variable))
            for name, variable in dataset.data_vars.items()
            if is_read_later(variable) and variable.dtype.kind in "biufc"
        }
    )
