"""Orders: what a process of a cell's own is told to make, and what it answers.

An order is written by who runs the study and read by the process (`studies.lab.cell_process`), on this machine or
another; whoever carries it (`studies.lab.cell_worker`) does not read it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from onebasin.base.errors import StudyError, WriteError
from onebasin.inference.runs.fingerprint import NUMPYRO_VERSIONS
from onebasin.inference.runs.provenance import package_versions

from .cell_worker import Answer
from .cells import Cell
from .making import Broken, Made, Recipe, Say, in_words, make_cell

_LAST_CHARACTERS = 16_000
"""How much of the end of a traceback is handed on."""


@dataclass(frozen=True)
class Order:
    """What a process is to make.

    Attributes
    ----------
    recipe : Recipe
        How.
    cell : Cell
        What.
    inputs : tuple of Cell
        From what.
    versions : mapping
        Of what computes, where the order was written.
    """

    recipe: Recipe
    cell: Cell
    inputs: tuple[Cell, ...]
    versions: Mapping[str, str]


def write(recipe: Recipe, cell: Cell, inputs: tuple[Cell, ...]) -> bytes:
    """Write an order; functions without a name of their own go by value."""
    from distributed.protocol.pickle import dumps

    return dumps(Order(recipe, cell, inputs, package_versions(*NUMPYRO_VERSIONS)))


def carry_out(written: bytes, inputs: Mapping[str, Answer], say: Say) -> Answer:
    """Make a cell, and say in plain values what became of it."""
    try:
        order = pickle.loads(written)
        _check(order)
        made = [Made(cell, **inputs[cell.key]["made"]) for cell in order.inputs]
        return answer_of(make_cell(order.recipe, order.cell, made, progress=False, say=say))
    except Broken as error:
        return {"broken": str(error), "trace": error.trace[-_LAST_CHARACTERS:]}
    except WriteError as error:
        return {"unwritten": str(error), "path": str(error.path)}
    except Exception as error:  # of what comes before the making
        return {"refused": in_words(error)}


def answer_of(made: Made) -> Answer:
    """What became of a cell, in plain values."""
    return {"made": {name: value for name, value in asdict(made).items() if name != "cell"}}


def _check(order: Order) -> None:
    """Refuse an order from where other numbers would be drawn, or for a folder that is not seen here."""
    here, own = os.uname().nodename, package_versions(*NUMPYRO_VERSIONS)
    other = {name: number for name, number in order.versions.items() if own[name] != number}
    if other:
        said = ", ".join(
            f"{name} {own[name]} instead of {number}" for name, number in other.items()
        )
        raise StudyError(
            f"`--scheduler` has a worker on {here} with {said}; give all machines the same environment."
        )
    if not order.recipe.files.folder.is_dir():
        raise StudyError(
            f"`--scheduler` has a worker on {here}, which does not see {order.recipe.files.folder}; give `--out` a "
            "folder that all machines share."
        )
