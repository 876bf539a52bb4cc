"""Arrays of numbers that stay in their files until they are asked for, or go elsewhere a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np
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
