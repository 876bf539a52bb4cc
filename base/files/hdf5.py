"""HDF5 files: their objects are looked up once, and a full disk ends no process."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5netcdf
import h5py

from .pieces import loaded

if TYPE_CHECKING:
    import xarray as xr


def load_tree(path: Path) -> xr.DataTree:
    """Read a NetCDF file of any groups into memory."""
    with open_tree(path) as opened:
        return loaded(opened)


def open_tree(path: Path) -> xr.DataTree:
    """Open a NetCDF file of any groups, to be read piece by piece; closing the tree closes it."""
    import xarray as xr  # here: what reads no trees does without
    from xarray.backends import CachingFileManager, H5NetCDFStore

    manager = CachingFileManager(NetCDF, str(path.absolute()), mode="r")
    with manager.acquire_context() as file:
        stores = {name: H5NetCDFStore(manager, group=name) for name in _groups(file)}
        groups = {name: xr.open_dataset(store, cache=False) for name, store in stores.items()}
    tree = xr.DataTree.from_dict(groups)
    tree.set_close(manager.close)
    return tree


def _groups(group: h5netcdf.Group) -> Iterator[str]:
    yield group.name
    for each in group.groups.values():
        yield from _groups(each)


class NetCDF(h5netcdf.File):
    """A NetCDF file in an HDF5 file that remembers, which is closed with it."""

    def __init__(self, place: Any, mode: str) -> None:
        self._remembering = RememberingFile(place, mode)
        super().__init__(self._remembering, mode, decode_vlen_strings=True)

    def close(self) -> None:
        """Close both."""
        super().close()
        self._remembering.close()


class RememberingFile(h5py.File):
    """A file that is read, or written as new, and remembers every object that was asked for by name.

    h5netcdf looks an object up at each of its properties, a thousand times for a posterior of a dozen variables, which
    is more than half of the time of opening or writing one. HDF5 looks through all of the file for the name of an
    object that was opened by a reference, such as a dimension; here that object has its name already.
    """

    def __init__(self, place: Any, mode: str = "r") -> None:
        self._known: dict[Any, Any] = {}  # objects by their names, and by their identifiers
        # A NetCDF file keeps the order in which its parts were made.
        super().__init__(place, mode, track_order=True if mode == "w" else None)

    def __getitem__(self, name: Any) -> Any:
        """Give an object by its name, or by a reference."""
        if not isinstance(name, str):
            found = super().__getitem__(name)
            return self._known.get(found.id, found)
        if name not in self._known:
            found = super().__getitem__(name)
            if isinstance(found, h5py.Group):
                found = _Group(found.id)
                found.known = self._known
            self._known[name] = found
            self._known.setdefault(found.id, found)
        return self._known[name]


class _Group(h5py.Group):
    """A group of such a file, which remembers nothing from before something was deleted."""

    known: dict[Any, Any]

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.known.clear()


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
        """Read; what could not be written reads as zeros, for HDF5 to go on."""
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
        """Close the file.

        Raises
        ------
        OSError
            The first error that a write met.
        """
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
