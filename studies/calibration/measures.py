"""What is measured of every calibration: the verdict, and how far off each test quantity is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..lab import Cell, Frame, Frames, Outcomes
from .design import Config
from .making import from_tree


def measure(config: Config, outcomes: Outcomes) -> Frames:
    """Fill two frames: a row a cell, and a row a test quantity of a cell."""
    found = {cell: from_tree(outcomes.tree(cell)) for cell in outcomes}
    return {
        "cells": Frame.of(_row(cell, each) for cell, each in found.items()),
        "quantities": Frame.of(
            row for cell, each in found.items() for row in _quantities(cell, each)
        ),
    }


def _row(cell: Cell, found: Any) -> dict[str, Any]:
    told = found.to_dict()
    judged = found.verdict != "cannot be judged"
    ratio, shift = found.seen if judged else (None, None)
    worst = found.off[0] if found.off else None
    return {
        **cell.factors,
        "verdict": found.verdict,
        "sentence": " ".join(found.sentences),
        "simulations": found.simulations,
        "usable": told["usable"],
        "failed": found.failed,
        "unconverged": found.unconverged,
        "divergent": told["divergent"],
        "quantities": len(found.names),
        "outside": len(found.outside),
        "seen_ratio": ratio,
        "seen_shift": shift,
        "worst": None if worst is None else worst.name,
        "worst_p": None if worst is None else worst.p_value,
        "worst_sentence": None if worst is None else worst.sentence,
        "seed": cell.seed,
    }


def _quantities(cell: Cell, found: Any) -> Iterator[dict[str, Any]]:
    for one in found.to_dict()["quantities"]:
        yield {**cell.factors, **one}
