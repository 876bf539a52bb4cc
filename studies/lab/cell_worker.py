"""What a Dask worker does for a study: it makes cells, each in a process of its own.

The task waits in a thread of the worker for the process. So a thread stands for a core, a cell that is killed takes no
worker with it, and none is left at work when its task is given up. A worker reads no order: this module imports nothing
heavy, and tasks are told, and tell, bytes and plain values.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from distributed import WorkerPlugin, get_worker

from onebasin.base.errors import RunCancelled, made_from
from onebasin.base.files.leftovers import working_folder
from onebasin.base.processes.children import Finished, run_guarded

PLUGIN = "onebasin-cells"
PROGRAM = "onebasin.studies.lab.cell_process"
SEPARATOR = "\x1e"
"""What stands before the lines of a process that are meant for us, as in RFC 7464: libraries print others."""
_LAST_CHARACTERS = 400
_TRIMMING = "MALLOC_TRIM_THRESHOLD_"
"""Dask's nannies have their workers give back freed memory at once. XLA's buffers come and go with every gradient, so
that a network's chains would spend half of their time on getting theirs again from the kernel."""

Answer = dict[str, Any]
"""What becomes of an order, by its one word: ``made`` (what is known of the cell), ``broken`` (by an error: message and
trace), ``unwritten`` (a file: message and path), ``refused`` (by what comes before the making), ``after`` (the key of
an input that failed, and why), ``stopped``."""
Hear = Callable[[str, str], None]
"""Called with a word, ``says`` or ``records``, and a line."""


class Stops(WorkerPlugin):
    """On a worker: stops the processes of tasks that are given up, as when the command has ended."""

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


def make_on_worker(
    order: bytes,
    inputs: Mapping[str, Answer],
    *,
    cell: str,
    cores: int,
    tries: int,
    topic: str,
) -> Answer:
    """Make a cell; the task of the graph.

    Parameters
    ----------
    order : bytes
        What to make, as `lab.orders` writes it.
    inputs : mapping
        Answers of the cells that it is made from, by key.
    cell : str
        Its key.
    cores : int
        How many it may use.
    tries : int
        How often it is tried in all, where errors break it off.
    topic : str
        Under which the scheduler hands on what is said.
    """
    for key, answer in inputs.items():
        if (why := _failure(answer)) is not None:
            return {"after": key, "why": why}
    worker = get_worker()
    task, stops = str(worker.get_current_task()), cast(Stops, worker.plugins[PLUGIN])
    cancel = stops.events[task] = threading.Event()

    def hear(word: str, line: str) -> None:
        worker.log_event(topic, {"cell": cell, word: line})

    try:
        hear("says", "")
        return _persist(
            lambda: make_in_process(order, inputs, cores=cores, cancel=cancel, hear=hear),
            tries,
            hear,
        )
    except RunCancelled:
        return {"stopped": True}
    finally:
        del stops.events[task]


def make_in_process(
    order: bytes,
    inputs: Mapping[str, Answer],
    *,
    cores: int,
    cancel: threading.Event,
    hear: Hear,
) -> Answer:
    """Have a process of its own make a cell.

    Raises
    ------
    RunCancelled
        If it was stopped by the event.
    """
    answers: list[Answer] = []

    def watch(lines: str) -> None:
        for line in lines.split("\n"):  # `splitlines` would divide them at the separator too
            if line.startswith(SEPARATOR):
                answers.append(json.loads(line.removeprefix(SEPARATOR)))
                for word in {"says", "records"} & answers[-1].keys():
                    hear(word, answers.pop()[word])

    with working_folder("onebasin-cell") as folder:
        (folder / "order").write_bytes(order)
        (folder / "inputs.json").write_text(json.dumps(inputs))
        ended = run_guarded(
            [sys.executable, "-m", PROGRAM, folder],
            folder=Path.cwd(),
            environment=environment(cores),
            cancel=cancel,
            watch=watch,
        )
    return answers[-1] if answers else {"broken": _how_it_ended(ended), "trace": ended.printed}


def environment(cores: int) -> dict[str, str]:
    """The variables of a process that has some of the cores (for chains, for XLA, for BLAS), and keeps freed memory."""
    names = (
        "ONEBASIN_CORES",
        "NPROC",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
    )
    inherited = {name: value for name, value in os.environ.items() if name != _TRIMMING}
    return {**inherited, **{name: str(cores) for name in names}}


def _failure(answer: Answer) -> str | None:
    """Why a cell has no posterior, where it has none."""
    match answer:
        case {"made": made}:
            return made["failure"]
        case {"after": key, "why": why}:
            return made_from(key, why)
    return str(answer.get("broken", "it was stopped"))


def _persist(attempt: Callable[[], Answer], tries: int, hear: Hear) -> Answer:
    """Make attempts until one is not broken off, or all are used up."""
    for number in range(1, tries):
        answer = attempt()
        if "broken" not in answer:
            return answer
        hear("says", f"failed, and is tried again ({number} of {tries - 1}): {answer['broken']}")
    return attempt()


def _how_it_ended(ended: Finished) -> str:
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        memory = ", perhaps for want of memory" if -ended.code == signal.SIGKILL else ""
        return f"its process was ended by {name}{memory}"
    last = ended.printed.strip()[-_LAST_CHARACTERS:].splitlines()
    return f"its process ended with code {ended.code}" + (f" and said: {last[-1]}" if last else "")
