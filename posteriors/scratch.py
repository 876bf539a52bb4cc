"""Storage for draws that arrive block by block: a file on disk, or memory if there are few.

Many draws go to a NetCDF file in a temporary folder. They are read from it only when needed, so they are never all in
memory. The folder is removed when the tree is closed, or at the latest when the process ends.
"""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import WriteError
from onebasin.base.files.netcdf import Sink, open_tree
from onebasin.base.files.writing import temporary_folder
from onebasin.base.machine import in_words

from .schema import SAMPLE_DIMS
from .storable import axes_of

type Values = np.ndarray | xr.DataArray
"""Draws (chain, draw, ...) in memory, or in a file and read when they are used."""
Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, Mapping[str, tuple[tuple[int, ...], np.dtype]]]
"""The variables of every group, each with its type and the shape of one draw."""

LARGE = 2**25
"""Draws of more bytes than this go to disk."""
_TOGETHER = 2**20
"""Number of bytes of a chain's draws to store contiguously on disk."""
_READ_AT_ONCE = 2**21
"""Number of bytes that readers take at a time: some entries of all draws."""
_LEAST_CHUNK = 2**13
"""Minimum size of a chunk, below which it is not worth an entry in the file's index."""


class _DrawsFile:
    """A file for the draws of chains in a new folder in `parent`; creating it raises `OSError` if the disk is full."""

    def __init__(self, size: tuple[int, int], groups: Shapes, parent: Path) -> None:
        import h5netcdf

        kinds = [kind for variables in groups.values() for kind in variables.values()]
        each = sum(prod(shape) * dtype.itemsize for shape, dtype in kinds)
        self._rows = max(1, min(_TOGETHER // each, size[1]))
        entries = max(1, _READ_AT_ONCE // (8 * size[0] * max(size[1], 1)))
        self._entries = max(entries, _LEAST_CHUNK // self._rows)
        self.folder = temporary_folder("draws", parent)
        self._open = ExitStack()
        try:
            needed, free = prod(size) * each, shutil.disk_usage(self.folder).free
            if needed > free:
                raise OSError(
                    f"they need {in_words(needed)}, but the free space is only {in_words(free)}"
                )
            sink = self._open.enter_context(Sink(self.folder / "draws.nc"))
            self._file = self._open.enter_context(h5netcdf.File(sink, "w"))
            for name, variables in groups.items():
                self._make_group(name, variables, size)
        except BaseException:
            self.remove()
            raise

    def _make_group(
        self, name: str, variables: Mapping[str, tuple[tuple[int, ...], np.dtype]], size: Any
    ) -> None:
        group = self._file.create_group(name)
        sizes = dict(zip(SAMPLE_DIMS, size, strict=True))
        dims = {}
        for variable, (shape, _) in variables.items():
            axes = axes_of(variable, len(shape), variables)
            sizes |= dict(zip(axes, shape, strict=True))
            dims[variable] = (*SAMPLE_DIMS, *axes)
        group.dimensions = sizes
        for axis, length in sizes.items():
            group.create_variable(axis, (axis,), np.int64, data=np.arange(length))
        for variable, (shape, dtype) in variables.items():
            stored = np.dtype(np.int8) if dtype.kind == "b" else dtype
            chunks: tuple[int, ...] | None = None
            if prod(shape) > self._entries:  # Too many to write and read at once.
                lengths: list[int] = []
                left = self._entries
                for length in reversed(shape):
                    lengths.insert(0, min(length, left))
                    left = max(1, left // length)
                chunks = (1, self._rows, *lengths)
            made = group.create_variable(variable, dims[variable], stored, chunks=chunks)
            if dtype.kind == "b":
                made.attrs["dtype"] = "bool"  # This is xarray's convention.

    def put(self, group: str, name: str, chain: int, first: int, values: np.ndarray) -> None:
        """Write draws (draw, ...) of a variable, starting at the draw `first`."""
        if len(values):
            variable = self._file[group][name]
            variable[chain, first : first + len(values)] = values.astype(variable.dtype, copy=False)

    def tree(self) -> xr.DataTree:
        """Return the draws as a lazy tree; nothing can be added afterwards."""
        try:
            self._open.close()
            tree = open_tree(self.folder / "draws.nc")
        except BaseException:
            self.remove()
            raise
        on_close(tree, weakref.finalize(tree, self.remove))
        return tree

    def remove(self) -> None:
        """Remove the folder."""
        with suppress(Exception):  # A failed write no longer matters.
            self._open.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def with_axes_of(values: xr.DataArray, like: xr.DataArray) -> xr.DataArray:
    """Give draws in a file the axes, labels and attributes of another array of the same shape."""
    bare = values.drop_vars(list(values.coords))
    bare = bare.rename(dict(zip(bare.dims, like.dims, strict=True)))
    return bare.assign_coords(like.coords).assign_attrs(like.attrs)


def close_with(tree: xr.DataTree, other: xr.DataTree) -> None:
    """Close `other` together with a tree that uses its arrays."""
    on_close(tree, other.close)


def on_close(tree: xr.DataTree, act: Callable[[], object]) -> None:
    """Register a function to call after a tree is closed."""
    inner = tree._close

    def close() -> None:
        if inner is not None:
            inner()
        act()

    tree.set_close(close)


class Room:
    """Groups of variables (chain, draw, ...) to fill chain by chain; draws beyond `num_draws` are dropped.

    Many draws go to disk in `folder`. Without a folder, all draws stay in memory.
    """

    def __init__(self, num_chains: int, num_draws: int, folder: Path | None = None) -> None:
        self.size = (num_chains, num_draws)
        self._folder = folder
        self._held: dict[str, dict[str, np.ndarray]] = {}
        self._on_disk: _DrawsFile | None = None
        self._lock = threading.Lock()

    def put(self, number: int, first: int, groups: Mapping[str, Arrays]) -> None:
        """Add arrays (draw, ...) of a chain, starting at the draw `first`; the first call fixes the variables."""
        with self._lock:
            if not self._held and self._on_disk is None:
                self._make(groups)
            left = max(0, self.size[1] - first)
            for group, arrays in groups.items():
                for name, values in arrays.items():
                    if self._on_disk is not None:
                        self._on_disk.put(group, name, number, first, values[:left])
                    else:
                        place = slice(first, first + len(values[:left]))
                        self._held[group][name][number, place] = values[:left]

    def _make(self, groups: Mapping[str, Arrays]) -> None:
        kinds = {
            group: {name: (values.shape[1:], values.dtype) for name, values in arrays.items()}
            for group, arrays in groups.items()
        }
        sizes = [prod(s) * dtype.itemsize for held in kinds.values() for s, dtype in held.values()]
        if self._folder is not None and prod(self.size) * sum(sizes) > LARGE:
            with self._writing(self._folder):
                self._on_disk = _DrawsFile(self.size, kinds, self._folder)
            return
        self._held = {
            group: {name: np.empty((*self.size, *s), dtype) for name, (s, dtype) in held.items()}
            for group, held in kinds.items()
        }

    @cached_property
    def filed(self) -> xr.DataTree | None:
        """The draws on disk, or None; no draws can be added afterwards."""
        if self._on_disk is None or self._folder is None:
            return None
        with self._writing(self._folder):
            return self._on_disk.tree()

    def group(self, name: str) -> Mapping[str, Values]:
        """Return the variables of a group; call this only after the last draw has been added."""
        if self.filed is None:
            return self._held.get(name, {})
        return {str(n): values for n, values in self.filed[name].data_vars.items()}

    @contextmanager
    def _writing(self, folder: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise WriteError(
                folder,
                f"The draws of all chains do not fit into {folder} ({error.strerror or error}). Free some disk "
                "space, and repeat the command.",
            ) from error
