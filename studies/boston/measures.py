"""Measure the predictions of every split's test part."""

import numpy as np

from onebasin.analysis.predictive.heldout import predict_held_out
from onebasin.truth.problems.relu_networks import boston_split

from ..lab import Frame, Frames, Outcomes
from ..lab.cells import diagnosis_columns
from ..shared.heldout import calibration, columns_of
from .design import BostonConfig, target


def measure(config: BostonConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell, a row each; and what a straight line predicts."""
    splits = dict.fromkeys(cell.split or 1 for cell in outcomes)
    rows, lines = [], []
    for cell in outcomes:
        data = boston_split(config.seed, cell.split or 1)
        model = target(config, cell).model
        predictions = predict_held_out(outcomes.tree(cell), model, data.test.x, data.test.y)
        (y_sd,) = data.standardiser.inverse_sd(np.ones(1))
        scores, diagnosis = predictions.scores, diagnosis_columns(outcomes, cell)
        reached = diagnosis["reached_max_treedepth"]
        row = {**cell.factors, **columns_of(predictions, diagnosis["sampling_seconds"])}
        row |= calibration(predictions, data.test.y)
        row |= data_units(scores.mse, scores.log_score, y_sd, data.standardiser.log_scale)
        draws = diagnosis["num_chains"] * diagnosis["num_draws"]
        saturated = None if reached is None else reached / draws
        rows.append({**row, **diagnosis, "saturated": saturated})
    for number in splits:  # by least squares: what a network has to beat
        data = boston_split(config.seed, number)
        (y_sd,) = data.standardiser.inverse_sd(np.ones(1))
        train, test = (np.column_stack([np.ones(len(p.x)), p.x]) for p in (data.train, data.test))
        weights, *_ = np.linalg.lstsq(train, np.asarray(data.train.y, np.float64), rcond=None)
        mse = float(np.mean((test @ weights - data.test.y) ** 2))
        lines.append({"split": number, "mse": mse, **data_units(mse, None, float(y_sd), 0.0)})
    return {"cells": Frame.of(rows), "lines": Frame.of(lines)}


def data_units(
    mse: float, log_score: float | None, y_sd: float, log_scale: float
) -> dict[str, float | None]:
    """Turn scores into data units: `y_sd` in a standardised one, and `log_scale` off a log score, if there is one."""
    return {
        "mse_data_units": mse * y_sd**2,
        "log_score_data_units": None if log_score is None else log_score - log_scale,
    }
