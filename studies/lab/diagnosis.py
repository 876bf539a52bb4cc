"""The columns of a frame that say whether a posterior's draws can be trusted."""

from __future__ import annotations

from typing import Any

from onebasin.analysis.diagnostics.result import Diagnosis

_OF_THE_CELL = ("target", "engine", "method")


def diagnosis_columns(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis's headline numbers, its warnings, and whether a variational fit converged."""
    numbers = {k: v for k, v in diagnosis.summary().items() if k not in _OF_THE_CELL}
    fit = diagnosis.variational
    return {
        **numbers,
        "converged": None if fit is None else fit.converged,
        "warnings": list(diagnosis.warnings),
    }
