"""Measure the predictions of every split's test part."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from onebasin.analysis.predictive.heldout import predict_held_out
from onebasin.truth.problems.relu_networks import boston_split

from ..lab import Cell, Frame, Frames, Outcomes, Row
from ..lab.cells import diagnosis_columns
from ..shared.heldout import calibration, columns_of
from .design import BostonConfig, target


def measure(config: BostonConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell, a row each; and what a straight line predicts."""
    splits = dict.fromkeys(cell.split or 1 for cell in outcomes)
    return {
        "cells": Frame.of(_row(config, cell, outcomes) for cell in outcomes),
        "lines": Frame.of(_lines(config, splits)),
    }


def _row(config: BostonConfig, cell: Cell, outcomes: Outcomes) -> dict[str, Any]:
    """Score a cell's predictions, in standardised units and in the data's ($1,000)."""
    data = boston_split(config.seed, cell.split or 1)
    model = target(config, cell).model
    predictions = predict_held_out(outcomes.tree(cell), model, data.test.x, data.test.y)
    (y_sd,) = data.standardiser.inverse_sd(np.ones(1))
    diagnosis = diagnosis_columns(outcomes, cell)
    draws = diagnosis["num_chains"] * diagnosis["num_draws"]
    reached = diagnosis["reached_max_treedepth"]
    return {
        **cell.factors,
        **columns_of(predictions, diagnosis["sampling_seconds"]),
        **calibration(predictions, data.test.y),
        **data_units(
            predictions.scores.mse, predictions.scores.log_score, y_sd, data.standardiser.log_scale
        ),
        **diagnosis,
        "saturated": None if reached is None else reached / draws,
    }


def _lines(config: BostonConfig, splits: Iterable[int]) -> Iterable[Row]:
    """Fit a straight line to every split by least squares: what a network has to beat."""
    for number in splits:
        data = boston_split(config.seed, number)
        (y_sd,) = data.standardiser.inverse_sd(np.ones(1))
        train, test = (np.column_stack([np.ones(len(p.x)), p.x]) for p in (data.train, data.test))
        weights, *_ = np.linalg.lstsq(train, np.asarray(data.train.y, np.float64), rcond=None)
        mse = float(np.mean((test @ weights - data.test.y) ** 2))
        yield {"split": number, "mse": mse, **data_units(mse, None, float(y_sd), 0.0)}


def data_units(
    mse: float, log_score: float | None, y_sd: float, log_scale: float
) -> dict[str, float | None]:
    """Turn scores into data units: `y_sd` in a standardised one, and `log_scale` off a log score, if there is one."""
    return {
        "mse_data_units": mse * y_sd**2,
        "log_score_data_units": None if log_score is None else log_score - log_scale,
    }
