"""A cell made in a process of its own, which ends with us and whose end is not ours.

What to make goes there in a file that only this user can read; what comes back are lines on stdout, among whatever
libraries print: JSON texts behind the record separator of RFC 7464.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onebasin.inference.fingerprint import NUMPYRO_VERSIONS
from onebasin.inference.provenance import package_versions
from onebasin.models.errors import WriteError
from onebasin.models.storage.leftovers import working_folder
from onebasin.stan.processes import run_guarded

from ..errors import StudyError
from .cells import Cell
from .making import Broken, Made, Recipe, Say

PROGRAM = "onebasin.studies.cell_process"
SEPARATOR = "\x1e"
_LAST_CHARACTERS = 400


@dataclass(frozen=True)
class Order:
    """What a process is to make."""

    recipe: Recipe
    cell: Cell
    inputs: tuple[Made, ...]
    versions: Mapping[str, str]  # Those of who gives the order.


def make_in_process(
    recipe: Recipe,
    cell: Cell,
    inputs: Sequence[Made],
    *,
    cores: int,
    cancel: threading.Event,
    say: Say,
    log: Say,
) -> Made:
    """Make a cell, as `making.make_cell` does, in a process with some of the machine's cores.

    Raises
    ------
    Broken
        If the making was broken off by an error, or the process was killed.
    WriteError, StudyError
        If a file cannot be written, or what comes before the making failed.
    RunCancelled
        If it was stopped by the event.
    """
    from distributed.protocol.pickle import dumps  # by value where a study's function has no name

    answers: list[dict[str, Any]] = []

    def watch(lines: str) -> None:
        for line in lines.split("\n"):  # `splitlines` would divide them at the separator too
            if line.startswith(SEPARATOR):
                answer = json.loads(line.removeprefix(SEPARATOR))
                if "says" in answer:
                    say(answer["says"])
                elif "records" in answer:
                    log(answer["records"])
                else:
                    answers.append(answer)

    with working_folder("onebasin-cell") as folder:
        order = folder / "order"
        order.write_bytes(dumps(Order(recipe, cell, tuple(inputs), _versions())))
        ended = run_guarded(
            [sys.executable, "-m", PROGRAM, order],
            folder=Path.cwd(),
            environment=environment(cores),
            cancel=cancel,
            watch=watch,
        )
    if not answers:
        raise Broken(f"its process {_how_it_ended(ended.code, ended.printed)}", ended.printed)
    return _take(cell, answers[-1])


def environment(cores: int) -> dict[str, str]:
    """The variables of a process that has some of the cores: for chains, for XLA, for BLAS."""
    names = (
        "ONEBASIN_CORES",
        "NPROC",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
    )
    return {**os.environ, **{name: str(cores) for name in names}}


def read_order(path: Path) -> Order:
    """Read what to make.

    Raises
    ------
    StudyError
        If this machine is not set up as that which gives the order, or does not see the folder.
    """
    order = pickle.loads(path.read_bytes())
    own = _versions()
    other = {name: number for name, number in order.versions.items() if own[name] != number}
    if other:
        said = ", ".join(
            f"{name} {own[name]} instead of {number}" for name, number in other.items()
        )
        raise StudyError(
            f"`--scheduler` has a worker on {os.uname().nodename} with {said}; "
            "give all machines the same environment."
        )
    if not order.recipe.files.folder.is_dir():
        raise StudyError(
            f"`--scheduler` has a worker on {os.uname().nodename}, which does not see {order.recipe.files.folder}; "
            "give `--out` a folder that all machines share."
        )
    return order


def _versions() -> dict[str, str]:
    return package_versions(*NUMPYRO_VERSIONS)


def _take(cell: Cell, answer: dict[str, Any]) -> Made:
    """Return what was made, or raise what went wrong."""
    match answer:
        case {"made": made}:
            return Made(cell, **made)
        case {"broken": message, "trace": trace}:
            raise Broken(message, trace)
        case {"unwritten": message, "path": path}:
            raise WriteError(Path(path), message)
        case {"stopped": _}:
            raise Broken("its process was told to stop")
        case {"refused": message}:
            raise StudyError(message)
    raise Broken(f"its process said {answer}")


def _how_it_ended(code: int, printed: str) -> str:
    if code < 0:
        name = signal.Signals(-code).name
        memory = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
        return f"was ended by {name}{memory}"
    last = printed.strip()[-_LAST_CHARACTERS:].splitlines()
    return f"ended with code {code}" + (f" and said: {last[-1]}" if last else "")
