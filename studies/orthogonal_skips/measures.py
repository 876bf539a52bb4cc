"""Measures of predictions inside and outside the data's range, distances from the reference, and collapsed units.

Tables average over data sets, separately for each choice of the settings that the paper does not report (prior, noise,
function).

Collapsed units: if a fit prunes a unit, its outgoing weights are near zero and its incoming weights return to the prior
(Trippe and Turner 2018). A unit counts as active if one of its weights to an active unit of the next layer, or to an
output, has a mean more than `THRESHOLD` standard deviations from zero. With orthogonal skips, weights to any unit of
the next layer count, because skips pass on the input of every unit.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr

from onebasin.models import BayesianNetwork
from onebasin.posteriors import schema

from ..lab.study import Cell, Change, Frames, Outcomes, Row, Summary, find, frame_of, select
from ..networks import MAX_RHAT, by_variable, diagnosis_columns, from_tree
from ..networks.held_out import HeldOut, gap, predict_held_out
from . import design
from .design import INSIDE, OUTSIDE, TRUTH, VI, SkipsConfig, SkipsPoints

THRESHOLD = 1.0

Moments = dict[str, tuple[np.ndarray, np.ndarray]]
"""Mean and standard deviation of each weight matrix and bias vector, by name."""
SCORES = (
    "rmse", "log_score", "coverage_50", "coverage_95", "width_95", "epistemic", "aleatoric",
)  # fmt: skip
OF_UNITS = ("kl_in", "kl_out", "snr_in", "snr_out")
"""Measures of a unit's incoming and outgoing weights: KL to their prior in nats, and signal-to-noise ratio."""


def measure(config: SkipsConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell, with the cells of one data set and condition in memory at a time.

    Return four frames. `cells` has one row per posterior. `layers` has one row per layer of a final fit. `training` has
    one row per evaluation of a fit. `gaps` has one row for all layers and one per layer, at several steps of the
    training of a fit.
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
        "cells": frame_of(rows),
        "layers": frame_of(layers),
        "training": frame_of(training),
        "gaps": frame_of(
            {**_factors(cell), **row}
            for cell in outcomes
            if cell.method == design.GAP
            for row in from_tree(outcomes.tree(cell))[design.GAP].to_dict("records")
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
    """Score predictions at the points of one region.

    `explained` is the share of the true function's variance that the predictive mean explains. `miss` is the root mean
    square error of the predictive mean for the true function.
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
    """Return the share of the true function's variance that a mean with these squared errors explains."""
    return float(1 - squared.mean() / points.truth.var())


def _suffixed(columns: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}_{where}": value for name, value in columns.items()}


def _training(config: SkipsConfig, outcomes: Outcomes, cell: Cell) -> Iterator[Row]:
    """Measure a fit during training: the ELBO, collapsed units, and the variance that its mean weights explain."""
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
    """Return the number of active units and the KL of all weights to their prior."""
    kl = sum(each.sum() for each in weight_divergences(moments, network).values())
    return {"active": int(unit_activity(moments, network)["active"].sum()), "kl": float(kl)}


def moments_of(fit: xr.Dataset, model: BayesianNetwork, evaluation: int | None = None) -> Moments:
    """Read the moments from the group `variational` of a fit, at one evaluation of the ELBO or at the end."""
    if evaluation is not None:
        fit = fit[[schema.LOC_TRACE, schema.SCALE_TRACE]].isel(evaluation=evaluation)
        fit = fit.rename({schema.LOC_TRACE: "loc", schema.SCALE_TRACE: "scale"})
    vectors = np.stack([np.asarray(fit[name].values, np.float64) for name in ("loc", "scale")])
    ordered = {layer.bias for layer in model.network.layers if layer.hidden}
    found: Moments = {}
    for name, (loc, scale) in by_variable(vectors, model).items():
        if model.parametrisation.biases == "ordered" and name in ordered:
            # z_1, z_1 + exp(z_2), ... are sums of a normal and independent lognormals.
            steps = np.exp(loc[1:] + scale[1:] ** 2 / 2)
            variances = np.concatenate([scale[:1] ** 2, np.expm1(scale[1:] ** 2) * steps**2])
            loc = np.cumsum(np.concatenate([loc[:1], steps]))
            scale = np.sqrt(np.cumsum(variances))
        found[name] = loc, scale
    return found


def unit_activity(moments: Moments, model: BayesianNetwork) -> pd.DataFrame:
    """Return one row per hidden unit: `layer`, `active`, and KL and largest signal-to-noise of weights in and out."""
    layers = model.network.layers
    signal = {n: np.abs(mean) / sd for n, (mean, sd) in moments.items()}
    kl = weight_divergences(moments, model)
    rows: list[pd.DataFrame] = []
    seen = np.ones(layers[-1].out_dim, bool)
    for layer, after in reversed(list(pairwise(layers))):
        into, out = str(layer.weight), str(after.weight)
        active = (signal[out][:, seen] > THRESHOLD).any(axis=1)
        columns = {"kl_in": kl[into].sum(axis=0), "kl_out": kl[out].sum(axis=1)}
        columns |= {"snr_in": signal[into].max(axis=0), "snr_out": signal[out].max(axis=1)}
        rows.insert(0, pd.DataFrame({"layer": layer.out_axis, "active": active, **columns}))
        seen = active if model.network.skip is None else np.ones_like(active)
    return pd.concat(rows, ignore_index=True)


def weight_divergences(moments: Moments, model: BayesianNetwork) -> dict[str, np.ndarray]:
    """Return the KL from every weight's Gaussian to its prior, in nats."""
    layers = model.network.layers
    scales = zip(layers, model.prior.weight_scales(len(layers)), strict=True)
    found = {}
    for name, scale in ((str(layer.weight), scale) for layer, scale in scales):
        mean, sd = moments[name]
        found[name] = (mean**2 + sd**2) / (2 * scale**2) - 0.5 - np.log(sd / scale)
    return found


VARIANTS = tuple(("plain", name) for name in design.VARIANTS if name != "plain")
"""Pairs of the plain network and a variant that breaks its symmetry."""


def _disagrees(row: Row) -> bool | None:
    """Return whether chains disagree on f, inside or outside, or None without chains."""
    rhats = [row[f"rhat_{where}"] for where in (INSIDE, OUTSIDE)]
    return None if None in rhats else max(rhats) > MAX_RHAT


def trusted(frames: Frames, row: Row) -> bool:
    """Return whether NUTS ran on a row's data and network, and its chains agree on f."""
    truth = find(frames["cells"], data=row["data"], problem=row["problem"], method=TRUTH)
    return truth is not None and _disagrees(truth) is False


def _apart(where: str) -> Callable[[Row], float]:
    """Make a measure: the absolute log ratio of the sd of f to the sampler's."""
    return lambda row: abs(math.log(row[f"from_truth_sd_ratio_{where}"]))


_OUTSIDE_COVERAGE = "|coverage of 95 % less 0.95|, outside"
TABLES = (
    Summary(
        "Figure 1 in numbers, means over data sets, at test points inside the data's range (|x| < 1) and outside it "
        "(1 < |x| < 2). Explained: share of the true function's variance that the predictive mean explains. The paper "
        "draws its results and gives no numbers: it sees severe underfitting, and skips that fit well",
        {
            "explained, inside": f"explained_{INSIDE}",
            "log score, outside": f"log_score_{OUTSIDE}",
            "coverage of 95 %, outside": f"coverage_95_{OUTSIDE}",
            "active units": "active",
            "chains disagree on f, share": _disagrees,
        },
        by=("condition", "method", "problem"),
        printed=lambda row: (
            {
                "explained, inside": {"plain": "underfits", "orthogonal": "fits well"}.get(
                    row["problem"]
                )
            }
            if row["method"] == VI
            else {}
        ),
    ),
    Summary(
        "Mean-field fits, less the plain network's, paired over data sets. ELBOs of different networks bound different "
        "evidences",
        {
            "explained, inside": f"explained_{INSIDE}",
            "active units": "active",
            "KL to the prior, nats": "kl",
            "log score, outside": f"log_score_{OUTSIDE}",
            _OUTSIDE_COVERAGE: lambda row: abs(row[f"coverage_95_{OUTSIDE}"] - 0.95),
            "ELBO, nats": "elbo",
        },
        by=("condition",),
        over=select("cells", method=VI),
        printed=lambda row: (
            {
                "explained, inside": "better",
                "log score, outside": "better",
                _OUTSIDE_COVERAGE: "better",
            }
            if row["problem"] == "orthogonal"
            else {"explained, inside": "mostly as plain"}
            if row["problem"] == "ordered"
            else {}
        ),
        change=Change("problem", VARIANTS, "dataset"),
    ),
    Summary(
        "Distance of mean-field fits' sd of f from NUTS's, |log ratio|, less the plain network's, over data sets on "
        "which the chains agree on f (R-hat at most 1.05)",
        {where: _apart(where) for where in (INSIDE, OUTSIDE)},
        by=("condition",),
        over=select("cells", f"from_truth_sd_ratio_{INSIDE}", method=VI),
        change=Change("problem", VARIANTS, "dataset"),
        trusted=trusted,
    ),
    Summary(
        "NUTS to mean-field fit of the same model: the share of the function explained, likewise. The paper says that "
        "fits underfit in contrast to MCMC",
        {"explained, inside": f"explained_{INSIDE}"},
        by=("condition", "problem"),
        printed=lambda row: {"explained, inside": "lower"} if row["problem"] == "plain" else {},
        change=Change("method", ((TRUTH, VI),), "dataset"),
        trusted=trusted,
    ),
    Summary(
        "Equation 6 at the end of the training: bounds of the gap between a fit and its symmetric mixture, in nats, "
        "and the most that it could be. The paper expects almost none once weights have collapsed",
        {"at least": "lower", "at most": "upper", "log |G|": "log_order"},
        by=("condition", "problem", "layer"),
        over=select("gaps", end=True),
    ),
)
