"""Trees whose large variables are still in their files: taken from there a piece at a time while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

PIECE: int = 2**22
"""Bytes that are read and written at a time; what is no larger is taken whole."""


def is_read_later(variable: xr.DataArray) -> bool:
    """Tell whether a variable's numbers are still in a file, too many of them to be taken at once."""
    return (
        variable.nbytes > PIECE and not variable.variable._in_memory
    )  # of which xarray says nothing publicly


@contextmanager
def in_pieces(tree: xr.DataTree) -> Iterator[xr.DataTree]:
    """Give a tree that libraries write without having any large variable in memory.

    What is in memory stays as it is; what is not is given to them as arrays of Dask, whose pieces are made one after
    the other, in this thread.
    """
    if not any(is_read_later(v) for node in tree.subtree for v in node.data_vars.values()):
        yield tree
        return
    import dask  # here: most trees are in memory

    with dask.config.set(scheduler="synchronous"):
        yield tree.map_over_datasets(in_file)


def in_file(dataset: xr.Dataset) -> xr.Dataset:
    """Give a dataset whose large variables can be put together without being read, as arrays of Dask."""
    later = {name: cut(v) for name, v in dataset.data_vars.items() if is_read_later(v)}
    return dataset.assign(later)


def cut(variable: xr.DataArray) -> xr.DataArray:
    """An array of Dask in pieces of its first axes, such as some draws of one chain."""
    sizes: list[int] = []
    for axis, length in enumerate(variable.shape):
        beyond = prod(variable.shape[axis + 1 :]) * variable.dtype.itemsize
        sizes.append(min(length, max(1, PIECE // beyond)))
    return variable.chunk(dict(zip(variable.dims, sizes, strict=True)), inline_array=True)


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
