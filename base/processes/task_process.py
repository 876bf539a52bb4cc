"""Run a task in a separate process; both the caller's side and the process's side are here.

`start` runs ``python -m onebasin.base.processes.task_process FOLDER``. The process sends messages as lines of JSON on
stdout, and writes its result into the folder. This module imports nothing heavy.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..errors import RunCancelled, TaskDied, TaskError, error_in_words
from ..files.writing import working_folder
from ..run_log import LOGGER
from .children import ending, run_guarded
from .command import DONE, run_as_process

PACKAGES = ("onebasin", "jax", "jaxlib", "numpyro", "numpy", "scipy", "optax", "stanli")
"""The packages whose versions affect results; all machines must have the same versions."""
_SEPARATOR = "\x1e"
"""Character before each message, as in RFC 7464, since libraries print other lines."""
_LAST_CHARACTERS = 400
_TRIMMING = "MALLOC_TRIM_THRESHOLD_"
"""A variable by which Dask makes its workers return freed memory to the kernel at once; it is removed.

With it, chains of a network would spend half of their time allocating XLA's buffers again for every gradient.
"""


def tell(**told: Any) -> None:
    """Send a message, which must be valid as JSON, to the caller of this task; outside a task, drop it."""
    if _hearers:
        _hearers[-1](told)


Hearer = Callable[[dict[str, Any]], None]
"""A function that is called with each message of a task."""
_hearers: list[Hearer] = []


@contextmanager
def heard_by(hear: Hearer) -> Iterator[None]:
    """Pass the messages of this process's task to `hear` while the block runs."""
    _hearers.append(hear)
    try:
        yield
    finally:
        _hearers.pop()


def versions() -> dict[str, str]:
    """Return the versions that affect results, and Python's, which must be the same for cloudpickle."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def start(order: bytes, cores: int, cancel: threading.Event, hear: Hearer) -> bytes:
    """Run a task in a local process and return its pickled result, or raise `RunCancelled` if `cancel` is set."""
    hear({})

    def watch(lines: str) -> None:
        for line in lines.split("\n"):  # `splitlines` would also split at the mark.
            if line.startswith(_SEPARATOR):
                hear(json.loads(line.removeprefix(_SEPARATOR)))

    with working_folder("onebasin-task") as folder:
        (folder / "order").write_bytes(order)
        ended = run_guarded(
            [sys.executable, "-m", "onebasin.base.processes.task_process", folder],
            folder=Path.cwd(),
            environment=environment(cores),
            cancel=cancel,
            watch=watch,
        )
        with suppress(FileNotFoundError):
            return (folder / "result").read_bytes()
    if ended.code < 0:
        raise TaskDied(f"its process {ending(ended.code)}")
    last = ended.printed.strip()[-_LAST_CHARACTERS:].splitlines()
    said = f" and said: {last[-1]}" if last else ""
    raise TaskDied(f"its process ended with code {ended.code}{said}")


def environment(cores: int) -> dict[str, str]:
    """Return the environment of a process that may use this number of cores (for chains, XLA and BLAS)."""
    names = ("ONEBASIN_CORES", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    inherited = {name: value for name, value in os.environ.items() if name != _TRIMMING}
    return {**inherited, **dict.fromkeys((*names, "MKL_NUM_THREADS"), str(cores))}


class _Sending(logging.Handler):
    """Handler that sends notices (for the user) and records (for the run's log) to the caller."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(**{"says" if record.levelno >= logging.WARNING else "records": record.getMessage()})


def carried_out(order: bytes) -> bytes:
    """Run the task of an order and return the pickled result or error."""
    import cloudpickle

    try:
        found = _result(order)
    except KeyboardInterrupt:
        found = RunCancelled("The task was told to stop.")
    try:
        written: bytes = cloudpickle.dumps(found)
        if isinstance(found, Exception):
            pickle.loads(written)
    except Exception:  # Some libraries' errors cannot be pickled.
        return pickle.dumps(TaskError(error_in_words(found)))
    return written


def _result(order: bytes) -> Any:
    theirs, what = pickle.loads(order)
    own, here = versions(), platform.node()
    other = [
        f"{n} {own.get(n, 'missing')} instead of {v}" for n, v in theirs.items() if own.get(n) != v
    ]
    if other:
        return TaskError(
            f"The worker on {here} has {', '.join(other)}: install the same environment on all machines."
        )
    try:
        function, arguments = pickle.loads(what)
    except Exception as error:
        return TaskError(
            f"The worker on {here} cannot read its task: {error_in_words(error)}. Install the packages that the "
            "model imports there."
        )
    try:
        return function(*arguments)
    except Exception as error:
        return error


def main() -> int:
    """Run the task in the folder that the command names."""
    from .libraries import prepare_libraries

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Libraries' output goes to stderr.
    _hearers.append(lambda told: print(f"{_SEPARATOR}{json.dumps(told)}", file=answers, flush=True))
    prepare_libraries()
    LOGGER.addHandler(_Sending(logging.INFO))
    LOGGER.setLevel(logging.INFO)
    folder = Path(sys.argv[1])
    part = folder / "part"
    part.write_bytes(carried_out((folder / "order").read_bytes()))
    part.rename(folder / "result")
    return DONE


if __name__ == "__main__":
    from . import task_process  # Tasks import this module, which runs here as `__main__`.

    sys.exit(run_as_process(task_process.main))
