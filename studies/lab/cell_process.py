"""A cell made in a process: how it is started, and what the process does.

`start_cell` runs ``python -m onebasin.studies.lab.cell_process FOLDER``. The folder holds the order, which only the
process reads; it answers on stdout in lines of JSON, and says what became of the cell in the last one. This module
imports nothing heavy, so that a worker on another machine can pass orders on.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import StudyError, WriteError
from onebasin.base.files.leftovers import working_folder
from onebasin.base.processes.children import run_guarded
from onebasin.base.processes.command import DONE, run_as_process

if TYPE_CHECKING:
    from .cells import Cell
    from .making import MadeCell, Recipe, Say

PROGRAM = "onebasin.studies.lab.cell_process"
SEPARATOR = "\x1e"
"""Stands before the answers, as in RFC 7464: libraries print other lines."""
_LAST_CHARACTERS = 400
_TRACE_CHARACTERS = 16_000
"""Characters of the end of a traceback that an answer holds."""
_TRIMMING = "MALLOC_TRIM_THRESHOLD_"
"""Dask's nannies have their workers give back freed memory at once. XLA's buffers come and go with every gradient, so
that a network's chains would spend half of their time on getting theirs again from the kernel."""

Answer = dict[str, Any]
"""The outcome of an order, by its one word: ``made`` (the fields of `MadeCell`), ``broken`` (by an error: message and
trace), ``unwritten`` (a file: message and path), ``refused`` (by what comes before the making)."""
Hear = Callable[[str, str], None]
"""Called with a word, ``says`` or ``records``, and a line."""


def write_order(recipe: Recipe, cell: Cell, inputs: Sequence[MadeCell]) -> bytes:
    """Write what a process is to make, from what, and with which versions; functions without a name go by value."""
    import cloudpickle

    return bytes(cloudpickle.dumps((recipe, cell, tuple(inputs), _versions())))


def start_cell(order: bytes, *, cores: int, cancel: threading.Event, hear: Hear) -> Answer:
    """Start a process that makes the cell of an order, and wait for its answer; `RunCancelled` once `cancel` is set.

    `hear` is called with each line that the process says or records.
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
        ended = run_guarded(
            [sys.executable, "-m", PROGRAM, folder],
            folder=Path.cwd(),
            environment=environment(cores),
            cancel=cancel,
            watch=watch,
        )
    if answers:
        return answers[-1]
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        memory = ", perhaps because memory ran out" if -ended.code == signal.SIGKILL else ""
        broken = f"its process was ended by {name}{memory}"
    else:
        last = ended.printed.strip()[-_LAST_CHARACTERS:].splitlines()
        broken = f"its process ended with code {ended.code}"
        broken += f" and said: {last[-1]}" if last else ""
    return {"broken": broken, "trace": ended.printed}


def environment(cores: int) -> dict[str, str]:
    """Return the variables of a process that has some of the cores (chains, XLA, BLAS), and keeps freed memory."""
    names = (
        "ONEBASIN_CORES",
        "NPROC",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
    )
    inherited = {name: value for name, value in os.environ.items() if name != _TRIMMING}
    return {**inherited, **{name: str(cores) for name in names}}


def carry_out(order: bytes, say: Say) -> Answer:
    """Make the cell of an order, and say in plain values what became of it."""
    from .making import Broken, in_words, make_cell

    try:
        recipe, cell, inputs, versions = pickle.loads(order)
        here, own = os.uname().nodename, _versions()
        other = {name: number for name, number in versions.items() if own[name] != number}
        if other:
            said = ", ".join(
                f"{name} {own[name]} instead of {number}" for name, number in other.items()
            )
            raise StudyError(
                f"`--scheduler` has a worker on {here} with {said}; give all machines the same environment."
            )
        if not recipe.files.folder.is_dir():
            raise StudyError(
                f"`--scheduler` has a worker on {here}, which does not see {recipe.files.folder}; give `--out` a "
                "folder that all machines share."
            )
        made = make_cell(recipe, cell, inputs, progress=False, say=say)
        return {"made": {name: value for name, value in vars(made).items() if name != "cell"}}
    except Broken as error:
        return {"broken": str(error), "trace": error.trace[-_TRACE_CHARACTERS:]}
    except WriteError as error:
        return {"unwritten": str(error), "path": str(error.path)}
    except Exception as error:  # of what comes before the making
        return {"refused": in_words(error)}


def _versions() -> dict[str, str | None]:
    """Return the versions of the packages that decide the draws."""
    from onebasin.inference.runs.fingerprint import NUMPYRO_VERSIONS
    from onebasin.inference.runs.provenance import package_versions

    return dict(package_versions(*NUMPYRO_VERSIONS))


class _HandingOn(logging.Handler):
    """Hands on notices, to be said, and records, to be written to the run's log."""

    def __init__(self, answer: Callable[[Answer], None]) -> None:
        super().__init__(logging.INFO)
        self._answer = answer

    def emit(self, record: logging.LogRecord) -> None:
        word = "says" if record.levelno >= logging.WARNING else "records"
        self._answer({word: record.getMessage()})


def main() -> int:
    """Carry out the order in the folder that the command names."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(what: Answer) -> None:
        print(f"{SEPARATOR}{json.dumps(what)}", file=answers, flush=True)

    try:
        from onebasin.base.notices import LOGGER
        from onebasin.base.processes.libraries import prepare_jax, quieten_stan

        prepare_jax()
        quieten_stan()
        LOGGER.addHandler(_HandingOn(answer))
        LOGGER.setLevel(logging.INFO)
        order = (Path(sys.argv[1]) / "order").read_bytes()
        answer(carry_out(order, lambda line: answer({"says": line})))
    except KeyboardInterrupt:
        answer({"broken": "its process was told to stop", "trace": ""})
    return DONE


if __name__ == "__main__":
    sys.exit(run_as_process(main))
