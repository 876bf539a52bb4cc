"""Threads that share out the draws of a chunk, each with its own matrix products.

NumPy and SciPy release the interpreter's lock while they compute. One matrix product a draw is too small for
the threads of a BLAS library (measured at 512 units: its two threads took 30 ms of processor time for what one
does in 5), so that BLAS is held to one thread as long as draws are shared out. That setting is the process's. Its
libraries are looked for once, since that takes longer than a small alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from threadpoolctl import ThreadpoolController

from onebasin.base.checks import check_count
from onebasin.base.cores import available_cores


@dataclass(frozen=True, eq=False)
class Workers:
    """A pool of threads, or this thread alone.

    Attributes
    ----------
    pool : Executor or None
        The threads.
    count : int
        How many.
    """

    pool: Executor | None = None
    count: int = 1

    def over[T](self, num: int, function: Callable[[slice], T]) -> list[T]:
        """Call a function with slices that cover `num` draws, and return what it returns, in order."""
        edges = [num * k // self.count for k in range(self.count + 1)]
        pieces = [slice(a, b) for a, b in pairwise(edges) if b > a]
        return list(self.pool.map(function, pieces) if self.pool else map(function, pieces))


@contextmanager
def workers(threads: int | None = None) -> Iterator[Workers]:
    """Start threads, as many as there are cores by default.

    Raises
    ------
    ValueError
        If `threads` is not a positive whole number.
    """
    if threads is not None:
        check_count("threads", threads)
    count = threads or available_cores()
    with _libraries().limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield Workers(pool if count > 1 else None, count)


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that are loaded by now, NumPy's and SciPy's among them."""
    return ThreadpoolController()
