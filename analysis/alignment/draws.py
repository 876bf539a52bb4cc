"""Draws in chunks, the threads that process them, and the elements that move them.

A chunk is a slice of all draws, with chains one after the other (chain 0 first). Its arrays are (draw, *event). A chunk
covers whole chains or lies within one chain, so a file that is opened but not loaded is read piece by piece. This
module never writes to the posterior.

NumPy and SciPy release the interpreter's lock while they compute. The matrix product of one draw is too small for a
multithreaded BLAS library: with 512 units, two threads took 30 ms of processor time and one thread 5 ms. So BLAS is
limited to one thread, in the whole process, while draws are processed. The libraries are looked up only once, because
the search takes longer than a small alignment.

`Group.act` moves draws by all blocks, `move` can leave out one block to solve it. Permuting blocks act on different
axes and commute, so each block's part of an element can be replaced independently.

Integers that index components, such as allocations, are renumbered. Their draws reveal them: the values are component
numbers, counted from 0 or 1, and relabelled draws agree more with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int, Num
from threadpoolctl import ThreadpoolController

from onebasin.base.checks import check_count
from onebasin.base.errors import ArgumentError
from onebasin.base.machine import available_cores
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.elements import Element, Part, Permuted, on_arrays
from onebasin.posteriors import schema
from onebasin.posteriors.draws import checked
from onebasin.posteriors.view import View

Arrays = dict[str, np.ndarray]

MAX_BYTES = 2**25
"""Default memory limit in bytes for a chunk and all its results."""


@dataclass(frozen=True, eq=False)
class DrawReader:
    """A reader for the variables `names` that a symmetry moves, in memory or in a file.

    A chunk and all its results take about `max_bytes`; `extra` is the number of further results per draw. Variables
    must be real numbers with the axes chain and draw.
    """

    dataset: xr.Dataset
    names: tuple[str, ...]
    max_bytes: int = MAX_BYTES
    argument: str = "posterior"
    extra: int = 0

    def __post_init__(self) -> None:
        """Check the variables and the memory limit."""
        check_count("max_bytes", self.max_bytes)
        for name in self.names:
            if name not in self.dataset:
                there = ", ".join(map(str, self.dataset.data_vars)) or "none"
                raise ArgumentError(
                    f"`symmetry` moves {name}, but `{self.argument}` has no variable of this name (stored variables: "
                    f"{there}). Declare the symmetry of this model, or store {name} in the posterior."
                )
        if self.variables and not self.total:
            raise ArgumentError(f"`{self.argument}` has no draws: give at least one draw.")

    @property
    def lead(self) -> tuple[int, int]:
        """Number of chains and of draws per chain."""
        return self.dataset.sizes["chain"], self.dataset.sizes["draw"]

    @property
    def total(self) -> int:
        """Number of draws in all chains."""
        return math.prod(self.lead)

    @cached_property
    def variables(self) -> dict[str, xr.DataArray]:
        """The variables, with axes chain and draw first."""
        return {name: checked(self.dataset[name], self.argument) for name in self.names}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable in one draw."""
        return {name: variable.shape[2:] for name, variable in self.variables.items()}

    @cached_property
    def chunks(self) -> tuple[slice, ...]:
        """All chunks, in order."""
        entries = sum(math.prod(shape) for shape in self.shapes.values())
        # Allow for copies of the draws. Cost matrices are computed for few draws at a time, so they need little.
        at_most = max(1, self.max_bytes // (8 * 5 * (entries + self.extra)))
        draws = self.lead[1]
        length = at_most // draws * draws or at_most  # Whole chains, or part of one.
        span = max(length, draws)
        return tuple(
            slice(start, min(start + length, base + span, self.total))
            for base in range(0, self.total, span)
            for start in range(base, min(base + span, self.total), length)
        )

    def read(self, chunk: slice) -> Arrays:
        """Return the arrays (draw, *event) of a chunk."""
        chain, draw = divmod(chunk.start, self.lead[1])
        chains = slice(chain, -(-chunk.stop // self.lead[1]))
        draws = slice(draw, draw + chunk.stop - chunk.start)
        return {
            name: _real(variable[chains, draws].values.reshape(-1, *variable.shape[2:]))
            for name, variable in self.variables.items()
        }

    def read_one(self, row: int) -> Arrays:
        """Return the arrays (*event) of one draw."""
        chain, draw = divmod(row, self.lead[1])
        return {name: _real(v[chain, draw].values) for name, v in self.variables.items()}

    def check_finite(self) -> None:
        """Reject draws that are not finite."""
        for chunk in self.chunks:
            for name, values in self.read(chunk).items():
                bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
                if bad.any():
                    chain, draw = divmod(chunk.start + int(np.argmax(bad)), self.lead[1])
                    raise ArgumentError(
                        f"The draws of {name} in `{self.argument}` are not all finite (see chain {chain}, draw "
                        f"{draw}), so no distances can be computed. Find out why the model produces non-finite "
                        "values, or omit the draws that contain them."
                    )


def _real(values: np.ndarray) -> np.ndarray:
    return values if values.dtype.kind == "f" else values.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Workers:
    """A pool of threads, or only the current thread."""

    pool: Executor | None = None
    count: int = 1

    def over[T](self, num: int, function: Callable[[slice], T]) -> Iterator[T]:
        """Call a function with slices that cover `num` draws, and yield its results in order.

        Threads start immediately, before results are read.
        """
        edges = [num * k // self.count for k in range(self.count + 1)]
        pieces = [slice(a, b) for a, b in pairwise(edges) if b > a]
        return self.pool.map(function, pieces) if self.pool else map(function, pieces)

    def through[T](
        self,
        read: Callable[[slice], Arrays],
        chunks: Sequence[slice],
        function: Callable[[slice, Arrays], T],
    ) -> Iterator[T]:
        """Call a function with the rows and values of every piece of the draws, in order."""
        for chunk in chunks:
            values = read(chunk)

            def piece(within: slice, values: Arrays = values, first: int = chunk.start) -> T:
                rows = slice(first + within.start, first + within.stop)
                return function(rows, {name: v[within] for name, v in values.items()})

            yield from self.over(chunk.stop - chunk.start, piece)


@contextmanager
def workers(threads: int | None = None) -> Iterator[Workers]:
    """Start worker threads, by default one per core, and stop them at the end."""
    if threads is not None:
        check_count("threads", threads, most=1024)
    count = threads or available_cores()
    with _libraries().limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield Workers(pool if count > 1 else None, count)


@cache
def _libraries() -> ThreadpoolController:
    """Return the loaded libraries, including those of NumPy and SciPy."""
    return ThreadpoolController()


Parts = tuple[Part, ...]


def take(parts: Parts, rows: Any) -> Parts:
    """Return the parts of some draws."""
    return tuple(on_arrays(part, lambda a: a[rows]) for part in parts)


def put(parts: Parts, rows: Any, new: Parts) -> None:
    """Overwrite the parts of some draws."""
    for part, other in zip(parts, new, strict=True):
        for array, values in zip(part, other, strict=True):
            if array is not None and values is not None:
                array[rows] = values


def stack(parts: Sequence[Part]) -> Part:
    """Stack the parts of single elements."""
    return on_arrays(parts[0], lambda *arrays: np.stack(arrays), *parts[1:])


def copy(parts: Parts) -> Parts:
    """Copy parts so that their arrays can be overwritten."""
    return tuple(on_arrays(part, np.array) for part in parts)


def flatten(element: Element) -> Parts:
    """Merge the axes chain and draw: (chain, draw, ...) becomes (draw, ...)."""
    return tuple(on_arrays(part, lambda a: a.reshape(-1, *a.shape[2:])) for part in element)


def move(
    values: Mapping[str, np.ndarray],
    symmetry: Symmetry,
    parts: Sequence[Part],
    names: Iterable[str],
    *,
    without: int | None = None,
) -> dict[str, np.ndarray]:
    """Move draws (draw, *event) by all permuting or complementing blocks except block number `without`.

    Variables that do not move are returned without a copy.
    """
    moved = {name: values[name] for name in names}
    for place, (block, part) in enumerate(zip(symmetry, parts, strict=True)):
        if place != without and not _moves_nothing(part):
            moved = block.act(moved, *part)
    return moved


def _moves_nothing(part: Part) -> bool:
    """Check whether all permutations are the identity, which is faster than copying draws."""
    if not isinstance(part, Permuted):
        return False
    order, signs = part
    in_order = (order == np.arange(order.shape[-1])).all()
    return bool(in_order and (signs is None or (signs == 1).all()))


def bare(symmetry: Symmetry, parts: Sequence[Part]) -> tuple[Symmetry, Parts]:
    """Return the blocks and parts as they act on variances, which have no sign or complement."""
    moving = (block.of_variances(part) for block, part in zip(symmetry, parts, strict=True))
    kept = [each for each in moving if each is not None]
    return tuple(block for block, _ in kept), tuple(part for _, part in kept)


def count_transpositions(
    permutation: Int[np.ndarray, "*lead component"],
) -> Int[np.ndarray, "*lead"]:
    """Count the transpositions of permutations of n components: n minus the number of cycles."""
    size = permutation.shape[-1]
    # Find the smallest number in each component's cycle. After k rounds, it is the smallest of the next 2^k components.
    smallest, ahead = np.broadcast_to(np.arange(size), permutation.shape), permutation
    for _ in range(max(size - 1, 0).bit_length()):
        smallest = np.minimum(smallest, np.take_along_axis(smallest, ahead, axis=-1))
        ahead = np.take_along_axis(ahead, ahead, axis=-1)
    cycles = (smallest == np.arange(size)).sum(axis=-1)
    return np.asarray(size - cycles)


LOOKED_AT = 200
"""Maximum number of draws per chain in which to search for allocations."""
GAIN = 0.02
"""Smallest increase in the share of agreeing pairs of draws that identifies an allocation."""


class Allocation(NamedTuple):
    """The number of the block whose components an integer indexes, and the index of the first component."""

    block: int
    first: int


def allocations_in(view: View, element: Element, moved: set[str]) -> dict[str, Allocation]:
    """Find integer variables that index the components of a block and are not moved themselves."""
    rows = np.arange(0, view.num_draws, -(-view.num_draws // LOOKED_AT))
    found: dict[str, Allocation] = {}
    for name, variable in view.arrays.items():
        timed = set(schema.SAMPLE_DIMS) <= set(variable.dims)
        if name in moved or not timed or variable.dtype.kind not in "iuf":
            continue
        drawn = variable.isel(draw=rows).transpose(*schema.SAMPLE_DIMS, ...).values
        if not np.isfinite(drawn).all() or (drawn != np.rint(drawn)).any():
            continue
        permuted = [(n, p.permutation) for n, p in enumerate(element) if isinstance(p, Permuted)]
        for block, permutation in permuted:
            for first in (1, 0):
                beyond = first + permutation.shape[-1]
                if not drawn.size or drawn.min() < first or drawn.max() >= beyond:
                    continue
                agree = _agreement(_renumbered(drawn, permutation[:, rows], first))
                if agree > _agreement(drawn) + GAIN:
                    found.setdefault(str(name), Allocation(block, first))
    return found


def renumbered(
    dataset: xr.Dataset, allocations: Mapping[str, Allocation], element: Element
) -> dict[str, xr.DataArray]:
    """Renumber allocations to match the components after alignment."""
    out = {}
    for name, (block, first) in allocations.items():
        drawn = dataset[name].transpose(*schema.SAMPLE_DIMS, ...)
        part = element[block]
        assert isinstance(part, Permuted)
        values = _renumbered(drawn.values, part.permutation, first)
        out[name] = drawn.copy(data=values).transpose(*dataset[name].dims)
    return out


def _renumbered(
    drawn: Num[np.ndarray, "chain draw *event"],
    permutation: Int[np.ndarray, "chain draw component"],
    first: int,
) -> Num[np.ndarray, "chain draw *event"]:
    flat = drawn.reshape(*drawn.shape[:2], -1).astype(np.intp) - first
    moved = np.take_along_axis(np.argsort(permutation, axis=-1), flat, axis=-1) + first
    return moved.reshape(drawn.shape).astype(drawn.dtype)


def _agreement(drawn: Num[np.ndarray, "chain draw *event"]) -> float:
    """Return the share of pairs of draws that have equal values, averaged over entries."""
    flat = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1)
    numbers = range(int(flat.min()), int(flat.max()) + 1)
    return float(sum(((flat == k).mean(axis=0) ** 2).mean() for k in numbers))
