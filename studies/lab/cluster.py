"""Cells on the workers of a Dask scheduler, the one part of a study that needs the package `distributed`.

A task waits in a thread of its worker for the process that makes the cell (`lab.cell_process`). So a thread stands for
a core, a killed cell takes no worker with it, and no process is left when its task is given up. Tasks take and return
bytes and plain values; posteriors stay in the run's folder, which all workers must see.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, cast

from distributed import Client, Future, KilledWorker, WorkerPlugin, get_worker

from onebasin.base.errors import Halted, RunCancelled, StudyError

from . import cell_process
from .cell_process import Answer
from .cells import Cell

PLUGIN = "onebasin-cells"
CONNECT_SECONDS = 10


class Stops(WorkerPlugin):
    """Stops, on a worker, the processes of tasks that are given up, as when the command has ended."""

    name = PLUGIN

    def __init__(self) -> None:
        self.events: dict[str, threading.Event] = {}

    def transition(self, key: Any, start: str, finish: str, **more: Any) -> None:
        """See `WorkerPlugin`."""
        if finish in ("cancelled", "released", "forgotten") and str(key) in self.events:
            self.events[str(key)].set()

    def teardown(self, worker: Any) -> None:
        """See `WorkerPlugin`."""
        for event in list(self.events.values()):
            event.set()


def make_on_worker(order: bytes, *, cell: str, cores: int, topic: str) -> Answer:
    """Make the cell of this key in a process; the scheduler hands on what is said, under the topic."""
    worker = get_worker()
    task, stops = str(worker.get_current_task()), cast(Stops, worker.plugins[PLUGIN])
    cancel = stops.events[task] = threading.Event()

    def hear(word: str, line: str) -> None:
        worker.log_event(topic, {"cell": cell, "word": word, "line": line})

    try:
        hear("says", "")
        return cell_process.start_cell(order, cores=cores, cancel=cancel, hear=hear)
    except RunCancelled:
        return {"refused": "`--scheduler` has given up a cell."}
    finally:
        del stops.events[task]


@contextmanager
def workers_of(
    address: str, cells: Sequence[Cell], say: Callable[[str], None], hear: Callable[..., None]
) -> Iterator[Callable[[Cell, bytes], Answer]]:
    """Connect to a scheduler that somebody has started, or raise a `StudyError` where none answers.

    Yields a function that makes a cell by its order on a worker, and waits for the answer. `hear` is called with a
    cell, a word (``says`` or ``records``) and a line.
    """
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise StudyError(
            f"`--scheduler` is {address}, where no Dask scheduler answers; start one with `dask scheduler`, or leave "
            "the option out."
        ) from error
    topic, numbers = f"{PLUGIN}-{secrets.token_hex(4)}", count()
    places = {cell.key: place for place, cell in enumerate(cells)}
    futures: list[Future] = []

    def heard(event: tuple[float, dict[str, str]]) -> None:
        what = event[1]
        hear(cells[places[what["cell"]]], what["word"], what["line"])

    def attempt(cell: Cell, order: bytes) -> Answer:
        # Dask groups tasks by the first part of their keys. Those of a group wait at the scheduler until a thread is
        # free, also of a worker that joins later. A group for each cell would stay with the worker that it was given.
        future = client.submit(
            make_on_worker,
            order,
            cell=cell.key,
            cores=cores,
            topic=topic,
            key=(f"cell-{topic}", f"{cell.key}-{next(numbers)}"),
            priority=-places[cell.key],
        )
        futures.append(future)
        try:
            return cast(Answer, future.result())
        except KilledWorker as error:
            message = "the workers that made it were killed, perhaps because memory ran out"
            return {"broken": message, "trace": str(error)}
        except CancelledError:
            raise Halted("`--scheduler` was lost: its process has ended, or the network.") from None
        except Exception as error:
            raise Halted(f"`--scheduler` has a worker that cannot make cells: {error}.") from error

    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            there = client.scheduler_info()["address"]
            say(f"waits for workers at {there}: start some with `dask worker`")
        # The cores of a cell: one, a thread of a worker, and more where there are fewer cells than threads.
        cores = max(1, threads // max(1, len(cells)))
        client.register_plugin(Stops())
        client.subscribe_topic(topic, heard)
        try:
            yield attempt
        finally:
            client.cancel(futures, force=True)
            with suppress(Exception):  # a scheduler that is gone
                client.unsubscribe_topic(topic)
