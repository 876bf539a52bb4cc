"""A run's cells as a task graph on Dask: a task a cell, with its inputs' outcomes as edges.

A task waits in a thread of a worker for a process of the cell's own (`lab.processes`). So a worker's thread stands for
a core, a cell that is killed takes no worker with it, and none is left at work when its task is given up. What tasks
return is small; posteriors stay in the run's folder, which all workers must see.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import dask
from distributed import (
    Client,
    Future,
    KilledWorker,
    LocalCluster,
    WorkerPlugin,
    as_completed,
    get_worker,
)

from onebasin.models.errors import RunCancelled, WriteError
from onebasin.models.notices import record

from ..errors import Halted, StudyError
from .cells import Cell
from .making import Made, Recipe, persist
from .processes import make_in_process

PLUGIN = "onebasin-cells"
CONNECT_SECONDS = 10
_NOBODY_ELSE = "127.0.0.1:0"
"""Where Dask serves its own pages, which it always does: a free port that no other machine sees."""
Hear = Callable[[Cell, str], None]
"""Called with what is said of a cell while it is made; "" when it begins."""


@dataclass(frozen=True)
class Halt:
    """What a task returns in the place of an outcome, where the study cannot go on.

    Attributes
    ----------
    message : str
        Why.
    unwritten : bool
        Whether a file could not be written.
    """

    message: str
    unwritten: bool = False


class Stops(WorkerPlugin):
    """On a worker: stops the processes of tasks that are given up, as when the command has ended."""

    name = PLUGIN

    def __init__(self) -> None:
        self.events: dict[str, threading.Event] = {}

    def transition(self, key: Any, start: str, finish: str, **more: Any) -> None:
        """See `WorkerPlugin`."""
        if finish in ("cancelled", "released", "forgotten") and key in self.events:
            self.events[key].set()

    def teardown(self, worker: Any) -> None:
        """See `WorkerPlugin`."""
        for event in list(self.events.values()):
            event.set()


@contextmanager
def local_client(threads: int) -> Iterator[Client]:
    """A scheduler and a worker inside this process; cells are made in processes that it starts."""
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": 1.0}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=threads,
            processes=False,
            memory_limit=0,
            dashboard_address=_NOBODY_ELSE,
            worker_dashboard_address=_NOBODY_ELSE,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def remote_client(address: str) -> Iterator[Client]:
    """A scheduler that somebody has started.

    Raises
    ------
    StudyError
        If none answers at the address.
    """
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise StudyError(
            f"`--scheduler` is {address}, where no Dask scheduler answers; start one with `dask scheduler`, or leave "
            "the option out."
        ) from error
    with client:
        yield client


def cores_of(client: Client, cells: int, say: Callable[[str], None]) -> int:
    """How many cores a cell has: one, a thread of a worker, and more where there are fewer cells than threads."""
    threads = sum(client.nthreads().values())
    if not threads:
        say(f"waits for workers at {client.scheduler.address}: start some with `dask worker`")
    return max(1, threads // max(1, cells))


def made_on_dask(
    recipe: Recipe, cells: Sequence[Cell], client: Client, *, cores: int, tries: int, hear: Hear
) -> Iterator[Made]:
    """Make cells as the graph allows, and yield what became of each, in the order in which they end.

    Raises
    ------
    WriteError, Halted
        If a file cannot be written, or a worker is not set up.
    """
    topic = f"{PLUGIN}-{secrets.token_hex(4)}"
    by_key = {cell.key: cell for cell in cells}

    def heard(event: tuple[float, Mapping[str, str]]) -> None:
        what = event[1]
        if "records" in what:
            record(f"{what['cell']}: {what['records']}")
        else:
            hear(by_key[what["cell"]], what["says"])

    client.register_plugin(Stops())
    client.subscribe_topic(topic, heard)
    futures: dict[str, Future] = {}
    for place, cell in enumerate(cells):
        before = [futures[key] for key in cell.inputs]
        how = {"cores": cores, "tries": tries, "topic": topic}
        futures[cell.key] = client.submit(
            _task, recipe, cell, before, **how, key=f"{cell.key}-{topic}", priority=-place
        )
    cell_of = {future.key: by_key[key] for key, future in futures.items()}
    failed: dict[str, Made] = {}
    try:
        for future in as_completed(futures.values()):
            made = _outcome(recipe, cell_of[future.key], future, failed)
            if made.failure is not None:
                failed[made.cell.key] = made
            yield made
    finally:
        client.cancel(list(futures.values()), force=True)
        with suppress(Exception):
            client.unsubscribe_topic(topic)


def _outcome(recipe: Recipe, cell: Cell, future: Future, failed: Mapping[str, Made]) -> Made:
    """What became of a cell, by its task; raises where the study cannot go on."""
    if future.status == "finished":
        found = future.result()
        if isinstance(found, Made):
            return found
        if found.unwritten:
            raise WriteError(recipe.files.folder, found.message)
        raise Halted(found.message)
    if future.status == "cancelled":
        raise Halted("`--scheduler` was lost: its process has ended, or the network.")
    error = future.exception()
    if not isinstance(error, KilledWorker):
        raise Halted(f"`--scheduler` has a worker that cannot make cells: {error}.")
    for key in cell.inputs:
        if key in failed:  # its error is this task's too
            message = f"made from {key}, which failed: {failed[key].failure}"
            recipe.files.keep_failure(cell.key, None, message)
            return Made(cell, failure=message)
    message = "the workers that made it were killed, perhaps for want of memory"
    recipe.files.keep_error(cell.key, message, str(error))
    return Made(cell, failure=message, broken=True)


def _task(
    recipe: Recipe,
    cell: Cell,
    inputs: Sequence[Made | Halt],
    *,
    cores: int,
    tries: int,
    topic: str,
) -> Made | Halt:
    """Make a cell on a worker."""
    for made in inputs:
        if isinstance(made, Halt):
            return made
    ready = [made for made in inputs if isinstance(made, Made)]
    worker = get_worker()
    key, events = worker.get_current_task(), worker.plugins[PLUGIN].events
    cancel = events[key] = threading.Event()

    def say(text: str) -> None:
        worker.log_event(topic, {"cell": cell.key, "says": text})

    def log(text: str) -> None:
        worker.log_event(topic, {"cell": cell.key, "records": text})

    try:
        say("")
        return persist(
            recipe,
            cell,
            ready,
            tries,
            lambda: make_in_process(
                recipe, cell, ready, cores=cores, cancel=cancel, say=say, log=log
            ),
            say,
        )
    except WriteError as error:
        return Halt(str(error), unwritten=True)
    except StudyError as error:
        return Halt(str(error))
    except RunCancelled:
        return Halt("The cell was stopped.")
    finally:
        del events[key]
