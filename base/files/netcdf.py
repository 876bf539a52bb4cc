"""Write trees of datasets to NetCDF files, completely or not at all, and read them into memory or lazily.

A lazily read array stays in its file until it is used or copied, piece by piece, to another file.
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
    """Write a tree with a seal; `writing.replacing` explains `new` and the errors.

    Large arrays that are still in other files are copied piece by piece.
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
        # This does the work of `DataTree.to_netcdf`, also for variables in files, and without Dask.
        root = H5NetCDFStore(whole, mode="w")
        for node in tree.subtree:
            store = root if node is tree else root.get_child_store(node.path)
            dataset = node.to_dataset(inherit=node is tree)
            for name, variable in dataset.data_vars.items():
                if (
                    is_in_file(variable)
                    and variable.nbytes > PIECE
                    and variable.dtype.kind in "biufc"
                ):
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
    import xarray as xr

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
            beyond = prod(self.shape[axis + 1 :]) * self.variable.dtype.itemsize
            step = min(length, max(1, PIECE // max(beyond, 1)))
            starts.append([slice(i, i + step) for i in range(0, length, max(step, 1))])
        for place in product(*starts):
            yield place, self.variable[place].values.astype(self.dtype, copy=False)
