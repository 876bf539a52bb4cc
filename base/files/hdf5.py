"""HDF5 files whose objects are looked up once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py

from .pieces import loaded

if TYPE_CHECKING:
    import xarray as xr


def load_tree(path: Path) -> xr.DataTree:
    """Read a NetCDF file of any groups into memory."""
    import xarray as xr  # here: what reads no trees does without

    with RememberingFile(path) as file, xr.open_datatree(file, engine="h5netcdf") as opened:
        return loaded(opened)


class RememberingFile(h5py.File):
    """A file that is only read, and remembers every object that was asked for by name.

    h5netcdf looks an object up by name at each of its properties, a thousand times for a posterior of a dozen
    variables, which is more than half of the time of opening one.
    """

    def __init__(self, path: Path) -> None:
        self._found: dict[str, Any] = {}
        super().__init__(path, "r")

    def __getitem__(self, name: Any) -> Any:
        """Give an object by its name, or by a reference, which is looked up each time."""
        if not isinstance(name, str):
            return super().__getitem__(name)
        if name not in self._found:
            self._found[name] = super().__getitem__(name)
        return self._found[name]
