"""Some cells of a study: those that the user names, and what the folder holds already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import StudyError

if TYPE_CHECKING:
    from .cells import Cell
    from .folder import Run
    from .study import Study

SHOWN = 3
"""Keys that a message shows."""


def only(study: Study, patterns: Iterable[str], run: Run | None = None) -> Study:
    """Restrict a study to the cells whose keys match a pattern, such as ``split03.*``, and to their inputs.

    Cells that the run's folder holds already are taken too, so that a study can be run part by part.

    Raises
    ------
    StudyError
        On a run, if a pattern matches no cell.
    """
    wanted = tuple(patterns)

    def cells(config: Any) -> tuple[Cell, ...]:
        every = study.cells(config)
        _check(wanted, every)
        kept = {cell.key for cell in every if _wanted(cell, wanted, run)}
        for cell in reversed(every):  # inputs come before the cells that need them
            if cell.key in kept:
                kept.update(cell.inputs)
        return tuple(cell for cell in every if cell.key in kept)

    return replace(study, cells=cells)


def _wanted(cell: Cell, patterns: tuple[str, ...], run: Run | None) -> bool:
    if any(fnmatchcase(cell.key, pattern) for pattern in patterns):
        return True
    return run is not None and run.files.posterior_path(cell.key).exists()


def _check(patterns: tuple[str, ...], cells: tuple[Cell, ...]) -> None:
    for pattern in patterns:
        if not any(fnmatchcase(cell.key, pattern) for cell in cells):
            shown = ", ".join(cell.key for cell in cells[:SHOWN])
            raise StudyError(
                f"`--only` is {pattern!r}, which is the key of none of the {len(cells)} cells: name some such as "
                f"{shown}; * stands for any text."
            )
