"""Trees whose large variables are still in their files: taken from there a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
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
