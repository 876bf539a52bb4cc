"""The columns of a frame that say whether a posterior's draws can be trusted."""

from typing import Any

from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

from .cells import Cell, Outcomes

_OF_THE_CELL = ("target", "engine", "method")


def diagnosis_columns(outcomes: Outcomes, cell: Cell) -> dict[str, Any]:
    """Return a cell's diagnosis: headline numbers, whether a variational fit converged.

    `depth_error` is the standard error of the mean tree depth, from the spread of the chains' means.
    """
    diagnosis = outcomes.diagnosis(cell)
    numbers = {k: v for k, v in diagnosis.summary().items() if k not in _OF_THE_CELL}
    fit = diagnosis.variational
    return {
        **numbers,
        "depth_error": _depth_error(outcomes, cell),
        "converged": None if fit is None else fit.converged,
    }


def _depth_error(outcomes: Outcomes, cell: Cell) -> float | None:
    depth = as_view(outcomes.tree(cell)).stat(schema.TREE_DEPTH)
    if depth is None or len(depth) < 2:
        return None
    means = depth.mean(axis=1)
    return float(means.std(ddof=1)) / len(means) ** 0.5
