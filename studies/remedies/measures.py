"""Measure every posterior: its bound, its predictions, how far it is from the truth, its cost.

Convention: the chains of variational posteriors are fits, each an approximation of its own, so that predictions are
scored fit by fit and averaged; `..._sd` is the standard deviation over fits. R-hat over fits says whether fits from
other starts come to the same: of weights, of weights after alignment, and of the network's outputs.

The claims about the remedies come after; each is tried on every data set, in either run. docs/guides/which-remedy.md
states those that hold everywhere, in the words of their labels, and no others; a test holds it to the record.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import gt, lt
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

from .. import lab
from ..lab import Cell, Finding, Frame, Frames, Outcomes, Row, Test
from ..lab.posteriors import halves, tree_of
from ..lab.shared import MAX_RHAT
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


NOTHING, SYMMETRISED = "plain.meanfield", "plain.symmetrised"
BROKEN = ("ordered.meanfield", "unit-norm.meanfield", "skips.meanfield")
"""Remedies that change the model so that no symmetry is left, or less of it."""
FITS = (NOTHING, *BROKEN, SYMMETRISED)
GAUSSIAN, FULL, DISTILLED = "plain.gaussian", "plain.gaussian-full", "plain.distilled"
NUTS, MCLMC, ENSEMBLE = "plain.nuts", "plain.mclmc", "plain.ensemble"
LITTLE = 0.1
"""A distance that changes by less than this share of it counts as unchanged."""
MOST = 0.9
"""Share of a gain that counts as most of it."""
NARROW = 0.95
"""Predictions whose spread is below this times the truth's count as too sure."""
APART = 1.1
"""R-hat above which fits, or chains, count as different."""


def no_truth(frames: Frames, row: Row) -> bool:
    """Tell whether the chains that a row is compared with disagree on the outputs, or are missing."""
    return row["truth_rhat"] is None or row["truth_rhat"] > MAX_RHAT


def _where(row: Row) -> str:
    return f"{row['dataset']}, run {row['run']}"


def _against(
    first: str, seconds: Iterable[str], tried: Callable[[Row, Row], Finding], *, void: bool = True
) -> Test:
    """Compare each of some remedies with the first, data set by data set and run by run."""
    return lab.contrast(
        "cells",
        "remedy",
        [(first, second) for second in seconds],
        tried,
        same=("dataset", "run"),
        where=lambda a, b: f"{_where(b)}: {b['label']}",
        void=no_truth if void else (lambda frames, row: False),
    )


def _of(remedies: Iterable[str], tried: Callable[[Row], Finding], *, void: bool = True) -> Test:
    """Ask the same of some remedies, data set by data set and run by run."""
    return lab.each(
        lab.select("cells", remedy=tuple(remedies)),
        tried,
        where=lambda row: f"{_where(row)}: {row['label']}",
        void=no_truth if void else (lambda frames, row: False),
    )


def _from_to(
    name: str, holds: Callable[[float, float], bool], form: str = "{:.3g} to {:.3g}"
) -> Callable[[Row, Row], Finding]:
    """Ask whether a measure of the first remedy and of the second are as they should be."""
    return lambda a, b: (form.format(a[name], b[name]), holds(a[name], b[name]))


_nearer = _from_to("distance", gt)


def _there_already(a: Row, b: Row) -> Finding:
    gain, there = b["best_bound"] - a["best_bound"], a["gap_lower"]
    return f"{there:.1f} of {gain:.1f} nats", gain > 0 and there > MOST * gain


def _too_sure(row: Row) -> Finding:
    return f"spread {row['spread_ratio']:.2f} of the truth's", row["spread_ratio"] < NARROW


def _outputs_agree(row: Row) -> Finding:
    words = f"R-hat {row['outputs_rhat']:.3f} of outputs, {row['weights_rhat']:.2f} of weights"
    return words, row["outputs_rhat"] <= MAX_RHAT and row["outputs_rhat"] < row["weights_rhat"]


_claim = partial(lab.Claim, mixed="depends")
CLAIMS = (
    _claim(
        "Chains agree on what the network predicts, not on its weights",
        "The labels of units switch between chains; outputs have no labels.",
        f"of NUTS's four chains the largest R-hat of an output is at most {MAX_RHAT:g}, and below that of a weight",
        _of([NUTS], _outputs_agree, void=False),
    ),
    _claim(
        "Symmetrised VI raises the bound",
        "Averaging over the group adds the mutual information to the ELBO, which plain mean-field VI leaves out.",
        "the lower bound of its symmetrised ELBO is above the ELBO of plain mean-field VI, of the best fit of each",
        _against(
            NOTHING, [SYMMETRISED], _from_to("best_bound", lt, "{:.1f} to {:.1f} nats"), void=False
        ),
    ),
    _claim(
        "Most of what symmetrised VI gains is there without training for it",
        "A plain fit that is averaged over the orders of its units after training has the gap of equation 6 as a gift.",
        f"of the best fits, the gap of plain mean-field VI is above {MOST:.0%} of what symmetrised VI has above its "
        "ELBO",
        _against(NOTHING, [SYMMETRISED], _there_already, void=False),
    ),
    _claim(
        "Symmetrised VI does not change the predictions",
        "What the average gains is evidence; its draws predict as those of the Gaussian that is averaged.",
        f"its distance from the truth is that of plain mean-field VI to within {LITTLE:.0%}",
        _against(
            NOTHING, [SYMMETRISED], _from_to("distance", lambda a, b: abs(b / a - 1) < LITTLE)
        ),
    ),
    _claim(
        "Ordered biases bring mean-field VI no nearer to the truth",
        "The order removes the symmetry, but makes a posterior that a Gaussian fits no better.",
        f"the distance from the truth is above {1 - LITTLE:.0%} of that with free biases",
        _against(
            NOTHING, ["ordered.meanfield"], _from_to("distance", lambda a, b: b > (1 - LITTLE) * a)
        ),
    ),
    _claim(
        "Orthogonal skips bring mean-field VI nearer to its truth",
        "With skips the model has no symmetry left, and a Gaussian fits its posterior better.",
        "the distance from the truth of its own model is below that of plain mean-field VI from its own",
        _against(NOTHING, ["skips.meanfield"], _nearer),
    ),
    _claim(
        "Unit-norm weights bring mean-field VI nearer to its truth",
        "Without the scale of its incoming weights a unit has one freedom less that a Gaussian fits badly.",
        "the distance from the truth of its own model is below that of plain mean-field VI from its own",
        _against(NOTHING, ["unit-norm.meanfield"], _nearer),
    ),
    _claim(
        "Mean-field VI is too sure of its predictions, with every remedy",
        "None of the remedies gives the spread of outputs that the posterior has.",
        f"the spread of its predictions is below {NARROW:g} times that of the truth of its model",
        _of(FITS, _too_sure),
    ),
    _claim(
        "Fits from other starts have other weights, with every remedy",
        "No remedy makes weights comparable between fits: there are more modes than symmetry makes.",
        f"R-hat of some weight over fits is above {APART:g} after alignment modulo what permutations are left",
        _of(
            FITS,
            lambda row: (f"R-hat {row['aligned_rhat']:.2f}", row["aligned_rhat"] > APART),
            void=False,
        ),
    ),
    _claim(
        "A Gaussian with the moments of aligned draws predicts worse than mean-field VI",
        "Moments keep each weight's spread and lose how weights go together, which predictions need.",
        "its distance from the truth is above that of plain mean-field VI",
        _against(NOTHING, [GAUSSIAN], _from_to("distance", lt)),
    ),
    _claim(
        "Of all single Gaussians the distilled one predicts nearest to the truth",
        "It is fitted to the predictions of the truth itself.",
        "its distance from the truth is below that of plain and of symmetrised mean-field VI, and of the Gaussians "
        "with the moments of aligned draws",
        lab.join(
            *(
                _against(other, [DISTILLED], _nearer)
                for other in (NOTHING, SYMMETRISED, GAUSSIAN, FULL)
            )
        ),
    ),
    _claim(
        "Deep ensembles are surer of their predictions than the posterior",
        "Members are optima of the posterior, not draws of it.",
        f"the spread of its predictions is below {NARROW:g} times that of the truth",
        _of([ENSEMBLE], _too_sure),
    ),
    _claim(
        "Deep ensembles are surer of their predictions than mean-field VI",
        "Optima differ less than draws of the Gaussian.",
        "the spread of its predictions is below that of plain mean-field VI",
        _against(NOTHING, [ENSEMBLE], _from_to("spread_ratio", gt)),
    ),
    _claim(
        "MCLMC is nearer to the truth than mean-field VI",
        "Unadjusted chains have a bias, but a smaller one than a Gaussian.",
        "its distance from the truth is below that of plain mean-field VI",
        _against(NOTHING, [MCLMC], _nearer),
    ),
    _claim(
        "Mean-field VI and ensembles cost less than NUTS",
        "The posterior's own draws cost the most.",
        "a fit takes fewer gradients of the whole data's likelihood than all chains of NUTS",
        _against(
            NUTS,
            [NOTHING, ENSEMBLE],
            _from_to("gradients", gt, "{:.0f} to {:.0f} gradients"),
            void=False,
        ),
    ),
)
