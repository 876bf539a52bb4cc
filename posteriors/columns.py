"""The scalar entries of variables as columns that are read when they are asked for, some at a time.

A posterior that is opened but not loaded is never in memory as a whole this way. Convention: a column is one entry of
one variable, variables in their order, entries of one in C order; what is read is (chain, draw, column) in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

BLOCK_BYTES = 2**21
"""About how much is read at a time."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of variables (chain, draw, ...).

    Attributes
    ----------
    variables
        Their arrays, chain and draw first, in memory or not.
    kept
        Which of their entries are columns; None for all of them.
    fixed
        What a column is in every draw, where it varies by no more than the rounding of its precision; else NaN. None
        where there is no such column.
    """

    variables: Sequence[xr.DataArray]
    kept: Int[np.ndarray, " column"] | None = None
    fixed: Float[np.ndarray, " column"] | None = None

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Chains, draws and columns."""
        chains, draws = self.variables[0].shape[:2]
        if self.kept is not None:
            return chains, draws, len(self.kept)
        return chains, draws, sum(prod(variable.shape[2:]) for variable in self.variables)

    def read(self, first: int, last: int) -> Float[np.ndarray, "chain draw column"]:
        """Read the columns from `first` to before `last`."""
        if self.kept is None:
            return self._steady(self._entries(first, last), slice(first, last))
        kept = self.kept[first:last]
        out = np.empty((*self.shape[:2], len(kept)))
        runs = np.split(np.arange(len(kept)), np.flatnonzero(np.diff(kept) > 1) + 1)
        for run in runs if len(kept) else ():
            out[..., run[0] : run[-1] + 1] = self._entries(
                int(kept[run[0]]), int(kept[run[-1]]) + 1
            )
        return self._steady(out, slice(first, last))

    def _steady(
        self, values: Float[np.ndarray, "*draws column"], part: slice
    ) -> Float[np.ndarray, "*draws column"]:
        if self.fixed is None:
            return values
        fixed = self.fixed[part]
        return np.where(np.isnan(fixed), values, fixed)

    def _entries(self, first: int, last: int) -> Float[np.ndarray, "chain draw column"]:
        """Read entries from `first` to before `last`, kept or not."""
        chains, draws, _ = self.shape
        out = np.empty((chains, draws, last - first))
        done = 0
        for variable in self.variables:
            size = prod(variable.shape[2:])
            for place in _boxes(variable.shape[2:], max(first, 0), min(last, size)):
                box = variable.variable[(slice(None), slice(None), *place)].values
                box = box.reshape(chains, draws, -1)
                out[..., done : done + box.shape[2]] = box
                done += box.shape[2]
            first, last = first - size, last - size
        return out

    def rows(self, chain: int, draws: slice) -> Float[np.ndarray, "draw column"]:
        """Read all columns of some draws of one chain."""
        pieces = [variable.variable[chain, draws].values for variable in self.variables]
        flat = [piece.reshape(len(piece), prod(piece.shape[1:])) for piece in pieces]
        rows = np.concatenate(flat, axis=1, dtype=np.float64)
        rows = rows if self.kept is None else rows[:, self.kept]
        return self._steady(rows, slice(None))


def _boxes(shape: tuple[int, ...], first: int, last: int) -> Iterator[tuple[int | slice, ...]]:
    """Cut a range of flat places into boxes of an array of this shape, in order."""
    if first >= last:
        return
    if not shape:
        yield ()
        return
    rest = prod(shape[1:])
    head, tail = -(-first // rest), last // rest  # whole rows lie between these
    if head > tail:  # a part of a single row
        yield from _row(shape, tail, first, last)
        return
    yield from _row(shape, head - 1, first, head * rest)
    if head < tail:
        yield (slice(head, tail), *(slice(None) for _ in shape[1:]))
    yield from _row(shape, tail, tail * rest, last)


def _row(
    shape: tuple[int, ...], row: int, first: int, last: int
) -> Iterator[tuple[int | slice, ...]]:
    start = row * prod(shape[1:])
    for place in _boxes(shape[1:], first - start, last - start):
        yield (row, *place)
