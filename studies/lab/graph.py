"""A run's cells as a task graph on Dask: a task a cell, with what became of its inputs as edges.

Workers have a process make each cell (`studies.lab.cell_worker`). What tasks return is small; posteriors stay in the
run's folder, which all workers must see.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from onebasin.base.errors import Halted, StudyError, WriteError, made_from
from onebasin.base.notices import record

from . import orders
from .cell_worker import PLUGIN, Answer, Stops, make_on_worker
from .cells import Cell
from .making import Made, Recipe

CONNECT_SECONDS = 10
_NOBODY_ELSE = "127.0.0.1:0"
"""Where Dask serves its own pages, which it always does: a free port that no other machine sees."""
_MADE, _MADE_FROM = "cell", "derived-cell"
"""Dask groups tasks by the first part of their keys. Those of a group without inputs wait at the scheduler until a
thread is free, and are moved to an idle worker as soon as one of the group has shown how long it takes. Cells that each
had a group of their own would stay with the worker that they were given first, and one that joins later would get none.
"""
Hear = Callable[[Cell, str], None]
"""Called with what is said of a cell while it is made; "" when it begins."""


@contextmanager
def local_client(threads: int) -> Iterator[Client]:
    """A scheduler and a worker inside this process; cells are made in processes that it starts."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=threads,
            processes=False,
            memory_limit=0,
            dashboard_address=_NOBODY_ELSE,
            worker_dashboard_address=_NOBODY_ELSE,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
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
        address = client.scheduler_info()["address"]
        say(f"waits for workers at {address}: start some with `dask worker`")
    return max(1, threads // max(1, cells))


def made_on_dask(
    recipe: Recipe,
    cells: Sequence[Cell],
    client: Client,
    *,
    kept: Mapping[str, Made],
    cores: int,
    tries: int,
    hear: Hear,
) -> Iterator[Made]:
    """Make cells as the graph allows, and yield what became of each, in the order in which they end.

    `kept` holds, by key, what they may be made from beside each other.

    Raises
    ------
    WriteError, Halted
        If a file cannot be written, or the scheduler is gone, or a worker is not set up.
    """
    topic = f"{PLUGIN}-{secrets.token_hex(4)}"
    by_key = {cell.key: cell for cell in (*(made.cell for made in kept.values()), *cells)}

    def heard(event: tuple[float, Mapping[str, str]]) -> None:
        what = event[1]
        if "records" in what:
            record(f"{what['cell']}: {what['records']}")
        else:
            hear(by_key[what["cell"]], what["says"])

    client.register_plugin(Stops())
    client.subscribe_topic(topic, heard)
    answers = {key: orders.answer_of(made) for key, made in kept.items()}
    futures: dict[str, Future] = {}
    for place, cell in enumerate(cells):
        futures[cell.key] = client.submit(
            make_on_worker,
            orders.write(recipe, cell, tuple(by_key[key] for key in cell.inputs)),
            {key: futures.get(key, answers.get(key)) for key in cell.inputs},
            cell=cell.key,
            cores=cores,
            tries=tries,
            topic=topic,
            key=(f"{_MADE_FROM if cell.inputs else _MADE}-{topic}", cell.key),
            priority=-place,
        )
    cell_of = {future.key: by_key[key] for key, future in futures.items()}
    ended = dict(kept)
    try:
        for future in as_completed(futures.values(), loop=client.loop):
            cell = cell_of[future.key]
            made = _made(recipe, cell, _answer(cell, future, ended))
            if made.broken:
                hear(cell, f"failed: {made.failure}")
            ended[cell.key] = made
            yield made
    finally:
        client.cancel(list(futures.values()), force=True)
        with suppress(Exception):  # a scheduler that is gone
            client.unsubscribe_topic(topic)


def _answer(cell: Cell, future: Future, ended: Mapping[str, Made]) -> Answer:
    """What a task that has ended says, or what is to be said of it."""
    if future.status == "finished":
        return future.result()
    if future.status == "cancelled":
        raise Halted("`--scheduler` was lost: its process has ended, or the network.")
    error = future.exception()
    if not isinstance(error, KilledWorker):
        raise Halted(f"`--scheduler` has a worker that cannot make cells: {error}.")
    for key in cell.inputs:
        if key in ended and ended[key].failure is not None:  # its error is this task's too
            return {"after": key, "why": ended[key].failure}
    message = "the workers that made it were killed, perhaps for want of memory"
    return {"broken": message, "trace": str(error)}


def _made(recipe: Recipe, cell: Cell, answer: Answer) -> Made:
    """What became of a cell, kept where it has no posterior; raises where the study cannot go on."""
    match answer:
        case {"made": made}:
            return Made(cell, **made)
        case {"broken": message, "trace": trace}:
            recipe.files.keep_error(cell.key, message, trace)
            return Made(cell, failure=message, broken=True)
        case {"after": key, "why": why}:
            message = made_from(key, why)
            recipe.files.keep_failure(cell.key, None, message)
            return Made(cell, failure=message)
        case {"unwritten": message, "path": path}:
            raise WriteError(Path(path), message)
        case {"refused": message}:
            raise Halted(message)
    raise Halted("`--scheduler` has given up a cell.")
