"""Measures and claims of every calibration: the verdict, and how far off each test quantity is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..lab import Cell, Claim, Finding, Frame, Frames, Outcomes, Row, each, select
from .design import CalibrationConfig, from_tree


def measure(config: CalibrationConfig, outcomes: Outcomes) -> Frames:
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


WRONG = ("meanfield", "fullrank")


def _verdict(wanted: str) -> Callable[[Row], Finding]:
    """Return a test of whether a row's verdict is the one that is claimed; None where it could not be judged."""

    def tried(row: Row) -> Finding:
        holds = None if row["verdict"] == "cannot be judged" else row["verdict"] == wanted
        return row["verdict"], holds

    return tried


CLAIMS = (
    Claim(
        "NUTS is calibrated",
        "Both engines' NUTS draws from the posterior, in every parametrisation and program.",
        "no test quantity's ranks leave their band",
        each(select("cells", method="nuts"), _verdict("calibrated")),
    ),
    Claim(
        "ADVI is not",
        "A Gaussian is not the posterior of a network, and its ranks show it.",
        "a test quantity's ranks leave their band",
        each(select("cells", method=WRONG), _verdict("not calibrated")),
    ),
)
