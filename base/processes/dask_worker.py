"""The part of `tasks` that runs on the workers of a Dask cluster. It needs the package `distributed`."""

from __future__ import annotations

import threading
from typing import Any, cast

from distributed import WorkerPlugin, get_worker

from ..errors import RunCancelled, TaskError
from .task_process import start


class Stops(WorkerPlugin):
    """Worker plugin that stops the processes of cancelled tasks."""

    def __init__(self, name: str) -> None:
        self.name = name  # Unique to a run, since a second plugin of this name would stop the first one's tasks.
        self.events: dict[str, threading.Event] = {}

    def transition(self, key: Any, start: str, finish: str, **more: Any) -> None:
        """See `WorkerPlugin`."""
        if finish in ("cancelled", "released", "forgotten") and str(key) in self.events:
            self.events[str(key)].set()

    def teardown(self, worker: Any) -> None:
        """See `WorkerPlugin`."""
        for event in list(self.events.values()):
            event.set()


def run_on_worker(order: bytes, *, task: str, cores: int, topic: str) -> bytes:
    """Run a task in a process; the scheduler publishes its messages under the topic."""
    worker = get_worker()
    key, stops = str(worker.get_current_task()), cast(Stops, worker.plugins[topic])
    cancel = stops.events[key] = threading.Event()

    def hear(told: dict[str, Any]) -> None:
        worker.log_event(topic, {"task": task, "told": told})

    try:
        return start(order, cores, cancel, hear)
    except RunCancelled:
        raise TaskError("A worker stopped its task.") from None
    finally:
        del stops.events[key]
