"""Measure predictions inside and outside the data's range, the distance from the truth, and collapsed units."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from onebasin.analysis.predictive.heldout import HeldOut, gap, predict_held_out
from onebasin.analysis.predictive.uncertainty import predictive_uncertainty
from onebasin.analysis.summaries.unit_activity import unit_activity
from onebasin.analysis.summaries.weight_moments import weight_moments
from onebasin.posteriors.view import as_view

from ..lab import Cell, Frame, Frames, Outcomes, Row
from ..lab.cells import diagnosis_columns
from ..lab.posteriors import from_tree
from ..shared.heldout import MAX_RHAT
from .design import (
    CHECK,
    GAP,
    INSIDE,
    TRUTH,
    VI,
    SkipsCell,
    SkipsConfig,
    SkipsPoints,
    moments,
    points_of,
    target,
)

SCORES = ("rmse", "log_score", "coverage_50", "coverage_95", "width_95")
OF_UNITS = ("kl_in", "kl_out", "snr_in", "snr_out")
"""Measures of the weights into a unit and out of it: KL to their prior in nats, and signal to noise."""


def measure(config: SkipsConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell, those of one data set and condition in memory together.

    The frames: `cells`, a row a posterior; `layers`, a row a layer of a fit at the end; `training`, a row an
    evaluation of a fit; `gaps`, a row for all layers and one a layer, at several moments of a fit's training.
    """
    rows: list[Row] = []
    for name in dict.fromkeys(cell.data for cell in outcomes):
        rows += _of_data(config, outcomes, name)
    layers: list[Row] = []
    training: list[Row] = []
    for cell in outcomes:
        if cell.method == VI:
            for layer, units in unit_activity(outcomes.tree(cell)).units.groupby("layer"):
                row = {**_factors(cell), "layer": layer, "units": len(units)}
                row |= {"active": int(units["active"].sum())}
                layers.append(row | {name: units[name].median() for name in OF_UNITS})
            training += _training(config, outcomes, cell)
    return {
        "cells": Frame.of(rows),
        "layers": Frame.of(layers),
        "training": Frame.of(training),
        "gaps": Frame.of(
            {**_factors(cell), **row}
            for cell in outcomes
            if cell.method == GAP
            for row in from_tree(outcomes.tree(cell))[GAP]
        ),
    }


def _of_data(config: SkipsConfig, outcomes: Outcomes, name: str) -> Iterator[Row]:
    """Measure the posteriors of one data set under one condition."""
    alike = [cell for cell in outcomes if cell.data == name and cell.method in (VI, TRUTH, CHECK)]
    predictions = {}
    for cell in alike:
        tree, network = outcomes.tree(cell), target(config, cell).model
        predictions[cell] = {
            where: predict_held_out(tree, network, points.x, points.y)
            for where, points in _points(cell).items()
        }
    for cell, found in predictions.items():
        row = {**_factors(cell), **diagnosis_columns(outcomes, cell)}
        for where, points in _points(cell).items():
            split = predictive_uncertainty(outcomes.tree(cell), points.x)
            parts = {"epistemic": split.epistemic, "aleatoric": split.aleatoric}
            sds = {name: np.sqrt(np.mean(sd**2)) for name, sd in parts.items()}
            row |= _suffixed(_scores(found[where], points) | sds, where)
        if cell.method == VI:
            activity = unit_activity(outcomes.tree(cell))
            row |= {"active": activity.num_active, "units": len(activity.units), "kl": activity.kl}
        truth = next((c for c in alike if (c.problem, c.method) == (cell.problem, TRUTH)), None)
        if truth is not None and cell.method != TRUTH:
            for where, held_out in found.items():
                row |= _suffixed(gap(held_out, predictions[truth][where]), where, "from_truth_")
        yield row


def _factors(cell: Cell) -> dict[str, Any]:
    assert isinstance(cell, SkipsCell), "cells are made here"
    return {**cell.factors, "dataset": cell.number, "condition": str(cell.condition)}


def _points(cell: Cell) -> Mapping[str, SkipsPoints]:
    assert isinstance(cell, SkipsCell), "cells are made here"
    return points_of(cell.seed, cell.condition.frequency)


def _scores(held_out: HeldOut, points: SkipsPoints) -> dict[str, Any]:
    """Score predictions at points of one kind.

    `explained` is the share of the true function's variance that the predictive mean explains, `miss` its root mean
    square error against the true function.
    """
    scores = held_out.scores.to_dict()
    squared = (held_out.function.mean(axis=(0, 1)) - points.truth) ** 2
    chains = held_out.function.shape[0] > 1
    return {
        **{name: scores[name] for name in SCORES},
        "explained": _explained(squared, points),
        "miss": np.sqrt(squared.mean()),
        "rhat": held_out.worst_rhat if chains else None,
        "rhat_above": (held_out.points["rhat"] > MAX_RHAT).mean() if chains else None,
        "ess": held_out.median_ess if chains else None,
    }


def _explained(squared: np.ndarray, points: SkipsPoints) -> float:
    """Share of the true function's variance that a mean with these squared errors explains."""
    return float(1 - squared.mean() / points.truth.var())


def _suffixed(columns: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}_{where}": value for name, value in columns.items()}


def _training(config: SkipsConfig, outcomes: Outcomes, cell: Cell) -> Iterator[Row]:
    """Follow a fit over its training: the ELBO, what has collapsed, and what its mean weights still explain."""
    tree, network, points = outcomes.tree(cell), target(config, cell).model, _points(cell)[INSIDE]
    trace = tree["variational"].to_dataset()
    annealed = config.vi.anneal * config.vi.iterations
    for moment in moments(trace.sizes["evaluation"], config.gap.points):
        activity = unit_activity(tree, evaluation=moment)
        means = weight_moments(as_view(tree), network, evaluation=moment).mean
        weights = {name: jnp.asarray(mean) for name, mean in means.items()}
        function = np.asarray(network.network.apply(weights, jnp.asarray(points.x)))
        yield {
            **_factors(cell),
            "iteration": trace["iteration"].values[moment],
            "divergence_weight": min(1.0, trace["iteration"].values[moment] / max(annealed, 1.0)),
            "explained": _explained((function - points.truth) ** 2, points),
            "elbo": trace["elbo"].values[moment],
            "active": activity.num_active,
            "kl": activity.kl,
        }
