"""What is measured on every split's test part."""

from typing import Any

import numpy as np

from onebasin.analysis.predictive.heldout import predict_held_out

from ..heldout import columns_of
from ..lab import Cell, Frame, Frames, Outcomes
from ..lab.diagnosis import diagnosis_columns
from .design import Config, parts, target


def measure(config: Config, outcomes: Outcomes) -> Frames:
    """Measure every cell, a row each, one posterior in memory at a time."""
    return {"cells": Frame.of(_row(config, cell, outcomes) for cell in outcomes)}


def _row(config: Config, cell: Cell, outcomes: Outcomes) -> dict[str, Any]:
    """Score a cell's predictions, in standardised units and in the data's ($1,000)."""
    data = parts(config.seed, cell.split or 1)
    model = target(config, cell).model
    predictions = predict_held_out(outcomes.tree(cell), model, data.test.x, data.test.y)
    (y_sd,) = data.standardiser.inverse_sd(np.ones(1))
    return {
        **cell.factors,
        **columns_of(predictions),
        **data_units(
            predictions.scores.mse, predictions.scores.log_score, y_sd, data.standardiser.log_scale
        ),
        **diagnosis_columns(outcomes, cell),
    }


def data_units(
    mse: float, log_score: float | None, y_sd: float, log_scale: float
) -> dict[str, float | None]:
    """Turn scores into data units: `y_sd` in a standardised one, and `log_scale` off a log score, if there is one."""
    return {
        "mse_data_units": mse * y_sd**2,
        "log_score_data_units": None if log_score is None else log_score - log_scale,
    }
