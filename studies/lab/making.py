"""Making one cell: found in the folder, or made and kept there; the same in this process, in another, on any machine.

Every cell has a mark, the fingerprint of all that decides its draws; it covers the marks of its inputs, so that what
depends on a changed posterior is made again. What a cell is made from is read from the folder, never handed on.

An error before the making (data that are missing, no CmdStan) would meet every cell, and stops the study; one of the
making is `Broken`, which may be tried again; `CellFailed` and `AdviFailed` are results, and would come again.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onebasin import inference
from onebasin.base.errors import (
    AdviFailed,
    ArgumentError,
    InferenceError,
    OnebasinError,
    RunCancelled,
    WriteError,
    made_from,
)
from onebasin.inference.contracts.method import Method
from onebasin.inference.methods import as_word
from onebasin.inference.runs.fingerprint import fingerprint
from onebasin.inference.runs.posterior import open_posterior
from onebasin.posteriors import schema

from .cells import Cell, CellFailed, Context
from .folder import CellFiles

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.inference import Symmetrised
    from onebasin.models.target import Target

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """The inputs that the making of every cell of a run takes; processes hand it to each other."""

    target: Callable[[Any, Cell], Target | None]
    make: Callable[[Any, Cell, Context], xr.DataTree] | None
    """`target`, `make`: Those of the study."""
    config: Any  # Its settings.
    files: CellFiles  # Where cells are kept.


@dataclass(frozen=True)
class MadeCell:
    """The result of making a cell."""

    cell: Cell  # Which.
    mark: str | None = None  # Its mark.
    failure: str | None = None  # Why there is no posterior.
    seconds: float = 0.0  # What its posterior took, when it was made.
    found: bool = False  # Whether an earlier run has made it.
    broken: bool = False  # Whether it failed by an error, so that the next run tries again.


class Broken(OnebasinError, RuntimeError):
    """A making that was broken off by an error, which may not come again; `trace` says where in the code."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


def make_cell(
    recipe: Recipe, cell: Cell, inputs: Sequence[MadeCell], *, progress: bool, say: Say
) -> MadeCell:
    """Make a cell unless it is there; `Broken` if an error broke it off, `WriteError` where the disk is full."""
    files, target = recipe.files, recipe.target(recipe.config, cell)
    own = mark(cell, target, {made.cell.key: made.mark for made in inputs}, say)
    context = Context(target, files.checkpoint_path(cell.key) if own else None, progress, say)
    with files.held(cell.key, say):
        if (found := _found(files, cell, own, say)) is not None:
            return found
        try:
            if recipe.make is None:
                tree = sample(cell, context)
            else:
                start = time.perf_counter()
                trees = (open_posterior(files.posterior_path(made.cell.key)) for made in inputs)
                tree = recipe.make(recipe.config, cell, replace(context, inputs=tuple(trees)))
                tree.attrs.setdefault(schema.WALL_TIME, time.perf_counter() - start)
            return MadeCell(cell, own, seconds=files.keep(cell.key, own, tree))
        except (AdviFailed, CellFailed) as error:
            say(f"failed: {error}")
            files.keep_failure(cell.key, own, str(error))
            return MadeCell(cell, own, failure=str(error))
        except (WriteError, RunCancelled):
            raise
        except Exception as error:
            raise Broken(in_words(error), traceback.format_exc()) from error


def find_cell(recipe: Recipe, cell: Cell, inputs: Sequence[MadeCell], say: Say) -> MadeCell | None:
    """Take what an earlier run has made of a cell, if it has; where the folder knows nothing of it, nothing is read."""
    if not recipe.files.knows(cell.key):
        return None
    target = recipe.target(recipe.config, cell)
    own = mark(cell, target, {made.cell.key: made.mark for made in inputs}, say)
    return _found(recipe.files, cell, own, say)


def persist(
    recipe: Recipe,
    cell: Cell,
    inputs: Sequence[MadeCell],
    tries: int,
    attempt: Callable[[], MadeCell],
    say: Say,
) -> MadeCell:
    """Make attempts until one is not broken off, or all are used up: then the cell has failed.

    It has failed at once where one of its inputs has.
    """
    for made in inputs:
        if made.failure is not None:
            message = made_from(made.cell.key, made.failure)
            say(f"failed: {message}")
            recipe.files.keep_failure(cell.key, None, message)
            return MadeCell(cell, failure=message)
    for number in range(1, tries + 1):
        try:
            return attempt()
        except Broken as error:
            last = error
            if number < tries:
                say(f"failed, and is tried again ({number} of {tries - 1}): {error}")
    say(f"failed: {last}")
    recipe.files.keep_error(cell.key, str(last), last.trace)
    return MadeCell(cell, failure=str(last), broken=True)


def mark(
    cell: Cell, target: Target | None, marks: Mapping[str, str | None], say: Say | None = None
) -> str | None:
    """Hash everything that decides a cell's file; `marks` are those of its inputs, by key.

    Where the cell or one of its inputs has no fingerprint, it is None: the cell is made again whenever it is asked for.
    """
    names = ("engine", "method", "settings", "seed")
    deciding: dict[str, Any] = {name: getattr(cell, name) for name in names}
    inputs = deciding["inputs"] = [marks[key] for key in cell.inputs]
    if None in inputs:
        return None
    if target is not None:
        deciding |= {"symmetry": schema.encode_symmetry(target.symmetry), "dims": dict(target.dims)}
    return fingerprint(target, progress=say, **deciding)


def sample(cell: Cell, context: Context, method: Method | None = None, **how: Any) -> xr.DataTree:
    """Sample a cell's target by its own method, or by the one given; refuses a cell without a target.

    `how` are arguments of `infer` that are not the cell's.
    """
    if context.target is None:
        raise ArgumentError(
            f"`target` of the cell {cell.key} is None; give it a target, or make its posterior without sampling."
        )
    method = method or as_word(cell.method, cell.settings)
    return inference.infer(
        context.target,
        method,
        seed=cell.seed,
        checkpoint=context.checkpoint if method.keeps else None,
        predictive_mb=0,  # studies predict at points of their own
        symmetry=False,
        check_symmetry=False,
        progress=context.progress,
        **{"engine": cell.engine, **how},
    )


def symmetrise(cell: Cell, context: Context, method: Symmetrised) -> xr.DataTree:
    """Train a cell's approximations by symmetrised VI; the cell fails if an ELBO becomes infinite or undefined."""
    try:
        return sample(cell, context, method, engine=None)  # whichever has a definition
    except InferenceError as error:
        raise CellFailed(str(error)) from error


def _found(files: CellFiles, cell: Cell, own: str | None, say: Say) -> MadeCell | None:
    if (seconds := files.find(cell.key, own)) is not None:
        say("there already")
        return MadeCell(cell, own, seconds=seconds, found=True)
    if (failure := files.find_failure(cell.key, own)) is not None:
        say(f"failed before: {failure}")
        return MadeCell(cell, own, failure=failure, found=True)
    return None


def in_words(error: Exception) -> str:
    """Say an error: the sentence of one of ours, of others the name too."""
    text = str(error).strip()
    return text if isinstance(error, OnebasinError) and text else f"{type(error).__name__}: {text}"
