"""Measure predictions inside and outside the data's range, the distance from the truth, and collapsed units.

The paper's statements come after, each an effect over data sets, by what the paper leaves open (prior, noise,
function). The paper draws its results and gives no number, so every limit is ours. With fewer data sets than a Wilcoxon
test needs every statement is unclear.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from onebasin.analysis.predictive.heldout import HeldOut, gap, predict_held_out
from onebasin.models import BayesianNetwork
from onebasin.posteriors import schema

from .. import lab
from ..lab import Cell, Field, Frame, Frames, Outcomes, Row, Test, changes, select
from ..lab.cells import diagnosis_columns
from ..lab.posteriors import from_tree
from ..lab.shared import MAX_RHAT, effect_claim, with_interval
from . import design
from .activity import Moments, moments_of, unit_activity, weight_divergences
from .design import INSIDE, OUTSIDE, TRUTH, VI, SkipsConfig, SkipsPoints

SCORES = (
    "rmse", "log_score", "coverage_50", "coverage_95", "width_95", "epistemic", "aleatoric",
)  # fmt: skip
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
            network = design.target(config, cell).model
            moments = _moments(outcomes, cell, network)
            for layer, units in unit_activity(moments, network).groupby("layer"):
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
            if cell.method == design.GAP
            for row in from_tree(outcomes.tree(cell))[design.GAP]
        ),
    }


def _of_data(config: SkipsConfig, outcomes: Outcomes, name: str) -> Iterator[Row]:
    """Measure the posteriors of one data set under one condition."""
    alike = [
        cell for cell in outcomes if cell.data == name and cell.method in (VI, TRUTH, design.CHECK)
    ]
    predictions = {}
    for cell in alike:
        tree, network = outcomes.tree(cell), design.target(config, cell).model
        predictions[cell] = {
            where: predict_held_out(tree, network, points.x, points.y)
            for where, points in _points(cell).items()
        }
    for cell, found in predictions.items():
        row = {**_factors(cell), **diagnosis_columns(outcomes, cell)}
        for where, points in _points(cell).items():
            row |= _suffixed(_scores(found[where], points), where)
        if cell.method == VI:
            network = design.target(config, cell).model
            moments = _moments(outcomes, cell, network)
            row |= {"units": sum(network.network.hidden), **_collapse(moments, network)}
        truth = next((c for c in alike if (c.problem, c.method) == (cell.problem, TRUTH)), None)
        if truth is not None and cell.method != TRUTH:
            for where, held_out in found.items():
                row |= _suffixed(gap(held_out, predictions[truth][where]), where, "from_truth_")
        yield row


def _factors(cell: Cell) -> dict[str, Any]:
    return {**cell.factors, "dataset": cell.number, "condition": str(cell.case)}


def _points(cell: Cell) -> Mapping[str, SkipsPoints]:
    return design.points_of(cell.seed, cell.case.frequency)


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
    network, points = design.target(config, cell).model, _points(cell)[INSIDE]
    trace = outcomes.tree(cell)[schema.VARIATIONAL].to_dataset()
    annealed = config.vi.anneal * config.vi.iterations
    for moment in design.moments(trace.sizes["evaluation"], config.gap.points):
        moments = _moments(outcomes, cell, network, moment)
        weights = {name: jnp.asarray(mean) for name, (mean, _) in moments.items()}
        function = np.asarray(network.network.apply(weights, jnp.asarray(points.x)))
        yield {
            **_factors(cell),
            "iteration": trace["iteration"].values[moment],
            "divergence_weight": min(1.0, trace["iteration"].values[moment] / max(annealed, 1.0)),
            "explained": _explained((function - points.truth) ** 2, points),
            "elbo": trace["elbo"].values[moment],
            **_collapse(moments, network),
        }


def _moments(
    outcomes: Outcomes, cell: Cell, network: BayesianNetwork, evaluation: int | None = None
) -> Moments:
    fit = outcomes.tree(cell)[schema.VARIATIONAL].to_dataset()
    return moments_of(fit, network, evaluation)


def _collapse(moments: Moments, network: BayesianNetwork) -> dict[str, float]:
    """Count the active units, and give the KL of all weights to their prior."""
    kl = sum(each.sum() for each in weight_divergences(moments, network).values())
    return {"active": int(unit_activity(moments, network)["active"].sum()), "kl": float(kl)}


UNDERFITS, FITS = 0.5, 0.9
"""Shares of the true function's variance: a mean that explains less underfits severely, one that explains more fits."""
MOST = 0.5
"""More than this share of units counts as most."""
TIGHT = 0.9
"""The bounds count as almost equally tight where the gap leaves this share of its largest value unused."""
NOMINAL = 0.95
ALIKE = ("method", "condition")
SKIPS = (("plain", "orthogonal"), ("ordered", "both"))
"""Without and with skips, all else equal."""

_FIGURE = (
    "It can be seen that the baseline results in severe underfitting, while orthogonal skip connections fit the data "
    "well and provide better out of distribution uncertainty."
)
_COLLAPSE = (
    "[...] in contrast to MCMC methods, variational approximations often collapse most weights to the typically "
    "zero-centred prior, resulting in severe underfitting."
)
_GAP = (
    "[...] the Gaussian posterior approximation provides an almost equally tight bound compared to the symmetric-MoG "
    "if most weights collapse to the prior."
)
_ORDERED = "[...] if the biases take (near) zero values, the degeneracy remains (mostly) intact."


def disagrees(where: str) -> lab.Void:
    """Return a test of whether chains disagree on f, so that the sampler is no truth for a row's data and condition."""

    def void(frames: Frames, row: Row) -> bool:
        alike = {name: row[name] for name in ("data", "problem")}
        truth = frames["cells"].find(**alike, method=TRUTH)
        return truth is None or truth[f"rhat_{where}"] is None or truth[f"rhat_{where}"] > MAX_RHAT

    return void


def _stages(frames: Frames) -> Iterator[Row]:
    """Give a fit's gap where it is largest by its lower bound, and at the end by its upper bound."""
    for rows in frames["gaps"].where(layer=design.ALL).groups(["data"]):
        largest, end = max(rows, key=lambda row: row["lower"]), rows.row(end=True)
        yield {**largest, "stage": "the largest", "nats": largest["lower"]}
        yield {**end, "stage": "the last", "nats": end["upper"]}


def _alone(row: Row) -> str:
    return f"{row['problem']}, {lab.METHOD_WORDS[row['method']]}, {row['condition']}"


def _pair(first: Row, second: Row) -> str:
    return f"{first['problem']} to {_alone(second)}"


def _fits(measure: lab.Measure, side: lab.Side, pairs: Iterable[tuple[str, str]] = SKIPS) -> Test:
    """Compare fits of two variants, data set by data set: without and with skips where nothing else is said."""
    return changes(
        select("cells", method=VI), measure, "problem", pairs, side,
        scale="difference", by="dataset", same=ALIKE, where=_pair,
    )  # fmt: skip


def _nearer(where: str) -> Test:
    """Compare distances from the sampler, without and with skips, where it ran."""
    return changes(
        lambda frames: frames["cells"].where(method=VI).known(f"from_truth_sd_ratio_{where}"),
        lambda row: abs(math.log(row[f"from_truth_sd_ratio_{where}"])), "problem", SKIPS, "below",
        scale="difference", by="dataset", same=ALIKE, void=disagrees(where),
        where=lambda a, b: f"{_pair(a, b)}, {where}",
    )  # fmt: skip


def _exceeds(problem: str, measure: lab.Measure, limit: float) -> Test:
    over = select("cells", method=VI, problem=problem)
    return lab.exceeds(over, measure, limit, same=ALIKE, where=_alone)


CLAIMS = (
    effect_claim(
        "the baseline underfits severely",
        _FIGURE,
        f"the share of the true function's variance that the plain fit's mean does not explain has its interval above "
        f"{UNDERFITS:g}",
        _exceeds("plain", lambda row: 1 - row[f"explained_{INSIDE}"], UNDERFITS),
    ),
    effect_claim(
        "in contrast to MCMC",
        _COLLAPSE,
        "the share explained, plain fit less sampler, has its interval below 0",
        changes(
            select("cells", problem="plain"), f"explained_{INSIDE}", "method", ((TRUTH, VI),), "below",
            scale="difference", by="dataset", same=("problem", "condition"), void=disagrees(INSIDE),
            where=lambda a, b: f"plain, NUTS to mean-field ADVI, {a['condition']}",
        ),
    ),
    effect_claim(
        "most units collapse",
        _COLLAPSE,
        f"the plain fit's share of units that are not active has its interval above {MOST:g}",
        _exceeds("plain", lambda row: 1 - row["active"] / row["units"], MOST),
    ),
    effect_claim(
        "skips fit the data well",
        _FIGURE,
        f"the share explained has its interval above {FITS:g}, with skips and free biases",
        _exceeds("orthogonal", f"explained_{INSIDE}", FITS),
    ),
    effect_claim(
        "skips fit better than the baseline",
        _FIGURE,
        "the share explained, with skips less without, has its interval above 0",
        _fits(f"explained_{INSIDE}", "above"),
    ),
    effect_claim(
        "skips keep more units active",
        _COLLAPSE,
        "the number of active units, with skips less without, has its interval above 0",
        _fits("active", "above"),
    ),
    effect_claim(
        "better outside the data, log score",
        _FIGURE,
        "the log score at 1 < |x| < 2, with skips less without, has its interval above 0",
        _fits(f"log_score_{OUTSIDE}", "above"),
    ),
    effect_claim(
        "better outside the data, coverage",
        _FIGURE,
        "the distance of the 95 % interval's coverage at 1 < |x| < 2 from 0.95, with skips less without, has its "
        "interval below 0",
        _fits(lambda row: abs(row[f"coverage_95_{OUTSIDE}"] - NOMINAL), "below"),
    ),
    effect_claim(
        "nearer to the sampler's uncertainty",
        _FIGURE,
        "the absolute log ratio of the sd of f to the sampler's, inside and outside, with skips less without, has its "
        "interval below 0",
        lab.join(_nearer(INSIDE), _nearer(OUTSIDE)),
    ),
    effect_claim(
        "ordered biases do not suffice",
        _ORDERED,
        "the share explained, ordered biases less orthogonal skips, has its interval below 0",
        _fits(f"explained_{INSIDE}", "below", [("orthogonal", "ordered")]),
    ),
    effect_claim(
        "collapsed, the Gaussian is as tight as the mixture",
        _GAP,
        f"of log |G| the gap of equation 6 leaves a share unused that has its interval above {TIGHT:g}, at the end",
        lab.exceeds(
            select("gaps", layer=design.ALL, end=True), lambda row: 1 - row["upper"] / row["log_order"], TIGHT,
            same=("problem", "condition"), where=lambda row: f"{row['problem']}, {row['condition']}",
        ),
    ),
    effect_claim(
        "the gap falls as weights collapse",
        "[...] this gap is not a constant [...]",
        "the gap's upper bound at the end, less its largest lower bound during the training, has its interval below 0",
        changes(
            _stages, "nats", "stage", (("the largest", "the last"),), "below",
            scale="difference", by="dataset", same=("problem", "condition"),
            where=lambda a, b: f"{a['problem']}, {a['condition']}",
        ),
    ),
)  # fmt: skip

_COMPARED = {
    "active units": "active",
    "KL to the prior, nats": "kl",
    "explained, inside": f"explained_{INSIDE}",
    "RMSE, inside": f"rmse_{INSIDE}",
    "RMSE, outside": f"rmse_{OUTSIDE}",
    "log score, inside": f"log_score_{INSIDE}",
    "log score, outside": f"log_score_{OUTSIDE}",
    "coverage of 95 %, inside": f"coverage_95_{INSIDE}",
    "coverage of 95 %, outside": f"coverage_95_{OUTSIDE}",
    "ELBO, nats": "elbo",
}


def _differences(frames: Frames) -> Iterable[Row]:
    """Give each measure of a mean-field fit less the plain network's, data set by data set."""
    for rows in frames["cells"].where(method=VI).groups(["condition"]):
        for heading, measure in _COMPARED.items():
            row = {"condition": rows.rows[0]["condition"], "measure": heading}
            row["plain"] = rows.where(problem="plain").mean(measure)
            for variant in [name for name in design.VARIANTS if name != "plain"]:
                pairs = lab.pair(rows, measure, "problem", "plain", variant, by="dataset")
                row[variant] = with_interval(pairs.change(), "+.3g") if pairs.num else None
            yield row


DIFFERENCES = lab.RowTable(
    "Mean-field fits less the plain network's, paired over data sets: mean and 95 % interval (Student). ELBOs of "
    f"different networks bound different evidences. Claims ask for {lab.MIN_PAIRS} data sets",
    (
        Field("condition", "condition"),
        Field("measure", "measure"),
        Field("plain", "plain", unit="mean"),
        *(Field(name, name, unit="less plain") for name in design.VARIANTS if name != "plain"),
    ),
    over=_differences,
)
