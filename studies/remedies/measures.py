"""Measure every posterior: its bound, its predictions, how far it is from the truth, its cost.

Convention: the chains of variational posteriors are fits, each an approximation of its own, so that predictions are
scored fit by fit and averaged; `..._sd` is the standard deviation over fits. R-hat over fits says whether fits from
other starts come to the same: of weights, of weights after alignment, and of the network's outputs.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.predictive.classification import set_coverage
from onebasin.analysis.predictive.convergence import summarise_predictions
from onebasin.analysis.predictive.points import Points, Predicted, distances, predict_points
from onebasin.analysis.summaries.elbo import elbo
from onebasin.analysis.summaries.summary import summary
from onebasin.analysis.summaries.unit_activity import unit_activity
from onebasin.inference.variational.gap import mixture_gap
from onebasin.models import NetworkTarget
from onebasin.models.symmetry.blocks import Exchangeable, blocks_of
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

from ..lab import Cell, Frame, Frames, Outcomes
from ..lab.posteriors import halves, tree_of
from .design import BOUND, BY_NAME, RemediesConfig, parts, target

FITTED = ("meanfield", "symmetrised")
"""Methods whose chains are fits."""
SEVERAL = ("nuts", "mclmc", *FITTED)
"""Methods with several chains, which R-hat compares."""
OUTPUTS = 50
"""Test points at which the R-hat of outputs is taken."""
LEVEL = 0.95
"""The probability that intervals, and sets of classes, are to hold."""


def measure(config: RemediesConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell that is a row, those of a run and data set together, with their truth."""
    groups: dict[str, list[Cell]] = {}
    for cell in outcomes:
        if f"{cell.problem}.{cell.method}" in BY_NAME:
            groups.setdefault(cell.data, []).append(cell)
    rows = []
    for cells in groups.values():
        data = parts(cells[0].case, config.images, cells[0].seed).test
        truths = {c.problem: _Truth(outcomes.tree(c), data) for c in cells if c.method == "nuts"}
        for cell in cells:
            tree, network = outcomes.tree(cell), target(config, cell)
            one = BY_NAME[f"{cell.problem}.{cell.method}"]
            row = {**cell.factors, "dataset": cell.case, "run": cell.number, "remedy": one.name}
            row |= {"label": one.label, **_bound(cell, tree, network)}
            row |= _predictions(cell, tree, data, truths.get(one.truth))
            row |= _agreement(cell, tree, network, data.x)
            fits = tree[schema.POSTERIOR].sizes["chain"] if cell.method in FITTED else 1
            made_from = dict.fromkeys(_sources(outcomes, cell))
            every = [as_view(tree), *(as_view(outcomes.by_key(key)) for key in made_from)]
            seconds = [view.number(schema.WALL_TIME) or 0.0 for view in every]
            gradients = [view.number(schema.GRADIENT_EVALUATIONS) or 0.0 for view in every]
            rows.append(row | {"seconds": sum(seconds) / fits, "gradients": max(gradients) / fits})
    return {"cells": Frame.of(rows)}


class _Truth:
    """Predictions of chains of NUTS, whole and in halves."""

    def __init__(self, tree: xr.DataTree, data: Any) -> None:
        first, second = halves(tree[schema.POSTERIOR].to_dataset())
        self.whole = _predict(tree, tree[schema.POSTERIOR].to_dataset(), data)
        self.first, self.second = (_predict(tree, part, data) for part in (first, second))
        self.rhat = float(summarise_predictions(tree, data.x[:OUTPUTS])["rhat"].max())


def _predict(tree: xr.DataTree, posterior: xr.Dataset, data: Any) -> Predicted:
    """Predict at the test points; of a classifier with the coverage of sets of classes among the scores."""
    part = tree_of({schema.POSTERIOR: posterior}, tree.attrs)
    model = as_view(tree).network
    assert model is not None, "every posterior here is of a network"
    found = predict_points(model, part, Points.of(model, data.x, data.y))
    if not model.is_classifier:
        return found
    scores = {**found.scores, "coverage_95": set_coverage(found.centre, data.y, level=LEVEL)}
    return Predicted(found.centre, found.spread, scores)


def _bound(cell: Cell, tree: xr.DataTree, network: NetworkTarget) -> dict[str, Any]:
    """The best lower bound of the log evidence that each fit comes to, in nats, and the active units of the best fit.

    Of plain fits also by how much symmetrising the best one would raise its ELBO, between two bounds; of a Gaussian
    that was fitted to draws, its ELBO.
    """
    if (gaussian := as_view(tree).number(BOUND)) is not None:
        return {"bound": gaussian}
    if schema.VARIATIONAL not in tree.children:
        return {"bound": None}
    found = elbo(tree)
    name = "symmetrised_elbo_lower" if found.is_symmetrised else "elbo"
    values = found.table[name].to_numpy()
    columns = {"bound": values.mean(), "bound_sd": _sd(values), "best_bound": values.max()}
    columns |= {"rise": found.table["rise"].max()}
    if cell.method == "meanfield":
        gap = mixture_gap(network, tree, fit=found.best).total
        columns |= {"gap_lower": gap.lower, "gap_upper": gap.upper}
    if (
        not network.model.parametrisation.unit_norm
    ):  # whose weights have no normal prior to diverge from
        columns["active"] = unit_activity(tree).num_active
    return columns


def _predictions(cell: Cell, tree: xr.DataTree, data: Any, truth: _Truth | None) -> dict[str, Any]:
    """Scores and distances from the truth, means over fits."""
    posterior = tree[schema.POSTERIOR].to_dataset()
    chains = posterior.sizes["chain"] if cell.method in FITTED else 0
    each = [posterior.isel(chain=[chain]) for chain in range(chains)] or [posterior]
    names = ("accuracy", "rmse", "log_score", "coverage_50", "coverage_95", "mutual_information")
    found = []
    for part in each:
        predicted = _predict(tree, part, data)
        scores = {name: predicted.scores[name] for name in names if name in predicted.scores}
        if truth is not None:
            spread, wanted = (np.sqrt(np.mean(p.spread**2)) for p in (predicted, truth.whole))
            scores["distance"] = _distance(predicted, truth.whole, data)
            scores["spread_ratio"] = float(spread / wanted)
        found.append(scores)
    columns: dict[str, Any] = {"fits": len(each)}
    for name in found[0]:
        values = np.array([one[name] for one in found], np.float64)
        columns |= {name: values.mean(), f"{name}_sd": _sd(values)}
    if truth is not None:
        columns |= {"distance_floor": _distance(truth.second, truth.first, data)}
        columns |= {"truth_rhat": truth.rhat}
    return columns


def _distance(predicted: Predicted, truth: Predicted, data: Any) -> float:
    """Halved total variation of class probabilities, or difference of means of f in the truth's sds of f."""
    classifier = data.task == "classification"
    found = distances(predicted, truth, classifier=classifier)
    return found["total_variation" if classifier else "mean_distance"]


def _agreement(
    cell: Cell, tree: xr.DataTree, network: NetworkTarget, x: np.ndarray
) -> dict[str, float | None]:
    """The largest R-hat of weights, as they came and modulo permutations, and of outputs; None of one chain."""
    if cell.method not in SEVERAL or tree[schema.POSTERIOR].sizes["chain"] < 2:
        return {"weights_rhat": None, "aligned_rhat": None, "outputs_rhat": None}
    names = list(network.model.network.shapes)
    permutations = blocks_of(network.symmetry, Exchangeable)
    aligned = align(tree, permutations, gauge="keep").posterior if permutations else tree
    return {
        "weights_rhat": _worst(tree, names),
        "aligned_rhat": _worst(aligned, names),
        "outputs_rhat": float(summarise_predictions(tree, x[:OUTPUTS])["rhat"].max()),
    }


def _worst(tree: xr.DataTree, names: list[str]) -> float:
    return float(summary(as_view(tree).draws(names))["rhat"].max())


def _sources(outcomes: Outcomes, cell: Cell) -> Iterator[str]:
    """Keys of the cells that a cell is made from, and of those that these are made from."""
    for key in cell.inputs:
        yield key
        yield from _sources(outcomes, next(other for other in outcomes if other.key == key))


def _sd(values: np.ndarray) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None
