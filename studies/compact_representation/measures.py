"""From posteriors to frames: distances of predictions from HMC's, scores against the labels, alignment, pairs.

Frames: `rows` (one a representation), `floor` (the second half of HMC's chains against the first),
`alignments` (one a rule for HMC's draws), `dynamics` (two networks at the end of training), `swaps` (means over
runs, one a number of transpositions before training) and `lines` (one a run).
"""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.analysis.alignment.barriers import Barrier
from onebasin.analysis.predictive.classification import (
    agreement,
    calibration_error,
    entropy,
    total_variation,
)
from onebasin.truth.problems.images import image_split

from ..lab import Frame, Frames, Outcomes
from .design import DYNAMICS, RULES, SWAPS, Config, Row, aligned, rows
from .making import LAGS
from .predictions import SD_EDGES

KEPT = 0.5
"""Share of weights that are kept where accuracies of pruned networks are compared."""
Scores = dict[str, float]


def measures(config: Config, outcomes: Outcomes) -> Frames:
    """Measure every cell that succeeded."""
    labels = np.asarray(image_split(config.size, config.seed).test.y, dtype=np.int64)
    there = {cell.key for cell in outcomes}
    trees = {row: outcomes.by_key(row.key) for row in rows(config) if row.key in there}
    probability = {row.name: _probability(tree) for row, tree in trees.items()}
    floor = []
    if {"half-1", "half-2"} <= set(probability):
        floor = [score(probability["half-2"][0], probability["half-1"][0], labels)]
    found: dict[str, Iterable[dict[str, Any]]] = {
        "rows": (_row(row, tree, probability["hmc"][0], labels) for row, tree in trees.items()),
        "floor": floor,
        "alignments": (
            _alignment(rule, outcomes.by_key(aligned("hmc", rule)))
            for rule in RULES
            if aligned("hmc", rule) in there
        ),
    }
    if DYNAMICS in there:
        found["dynamics"] = [_dynamics(outcomes.by_key(DYNAMICS)["dynamics"].to_dataset())]
    if SWAPS in there:
        swaps = outcomes.by_key(SWAPS)["swaps"].to_dataset()
        found |= {"swaps": _swaps(swaps), "lines": _lines(swaps)}
    return {name: Frame.of(filled) for name, filled in found.items()}


def score(
    probability: Float[np.ndarray, "obs out"],
    truth: Float[np.ndarray, "obs out"],
    labels: Int[np.ndarray, " obs"],
) -> Scores:
    """Score one distribution over classes against HMC's and against the labels.

    `agreement` is the share of images with the same most probable class (the paper's equation 1), `total_variation`
    halved, twice this is the paper's equation 2; `log_score` is in nats an image.
    """
    with np.errstate(divide="ignore"):  # a class that was ruled out: minus infinity, and said so
        log_score = float(np.log(probability[np.arange(len(labels)), labels]).mean())
    return {
        "agreement": agreement(probability, truth),
        "total_variation": total_variation(probability, truth, halved=True),
        "accuracy": float((probability.argmax(axis=-1) == labels).mean()),
        "log_score": log_score,
        "calibration_error": calibration_error(probability, labels),
    }


def _row(
    row: Row, tree: xr.DataTree, truth: np.ndarray, labels: Int[np.ndarray, " obs"]
) -> dict[str, Any]:
    """Score the averaged probabilities (means over repeats) and, as `mean_...`, the network of the mean's weights.

    The mutual information is of class and draw, mean over images, in nats: the entropy of the averaged
    probabilities less the mean entropy of a draw's.
    """
    group = tree["predictive"].to_dataset()
    probability, accuracy = group["probability"].values, group["draw_accuracy"].values
    scores = [score(repeat, truth, labels) for repeat in probability]
    averaged = np.mean([list(repeat.values()) for repeat in scores], axis=0)
    of_mean = score(group["mean_probability"].values, truth, labels)
    return {
        "name": row.name,
        "group": row.group,
        "label": row.label,
        "one_basin": row.one_basin,
        **dict(zip(scores[0], averaged, strict=True)),
        **{f"mean_{name}": value for name, value in of_mean.items()},
        "draw_accuracy": accuracy.mean(),
        "draw_accuracy_sd": accuracy.std(),
        "mutual_information": (entropy(probability) - group["entropy"].values).mean(),
        "median_sd": _median_sd(tree),
        "kept_accuracy": _kept_accuracy(tree),
    }


def _probability(tree: xr.DataTree) -> Float[np.ndarray, "repeat obs out"]:
    return np.asarray(tree["predictive"].to_dataset()["probability"].values)


def _median_sd(tree: xr.DataTree) -> float | None:
    """Median of the counted standard deviations of weights, interpolated within its bin."""
    if "spread" not in tree.children:
        return None
    share = np.cumsum(tree["spread"].to_dataset()["count"].values)
    return float(np.interp(share[-1] / 2, np.concatenate([[0], share]), SD_EDGES))


def _kept_accuracy(tree: xr.DataTree) -> float | None:
    """Accuracy of the mean with the share `KEPT` of the weights, those of lowest standard deviation."""
    if "pruning" not in tree.children:
        return None
    found = tree["pruning"].to_dataset()
    return float(np.interp(KEPT, found["keep"].values, found["accuracy_sd"].values))


def _alignment(rule: str, tree: xr.DataTree) -> dict[str, Any]:
    """Take how labels changed, and what was gained; only alignment by weights measures it."""
    found = json.loads(tree.attrs.get("switching", "{}"))
    changed = found.get("reassigned", {})
    names = ("ratio", "noise_ratio", "prior_ratio", "labellings")
    moved = {f"moved_{lag}": changed.get(str(lag)) for lag in LAGS}
    return {"rule": rule, **{name: found.get(name) for name in names}, **moved}


def _dynamics(found: xr.Dataset) -> dict[str, Any]:
    losses = np.stack([found[name].values[-1] for name in ("loss_raw", "loss_aligned")])
    raw, moved = Barrier(found["position"].values, losses).height
    return {"barrier_raw": raw, "barrier_aligned": moved}


def _swaps(found: xr.Dataset) -> list[dict[str, Any]]:
    names = ("after", "distance_raw", "distance_aligned", "barrier_raw", "barrier_aligned")
    return [
        {
            "before": before,
            **{name: found[name].values[:, place].mean() for name in names},
            "after_sd": found["after"].values[:, place].std(),
        }
        for place, before in enumerate(found["before"].values)
    ]


def _lines(found: xr.Dataset) -> list[dict[str, Any]]:
    """Take the transpositions along the line between the first network and its most permuted twin."""
    counts = found["between"].values
    return [{"run": run, "transpositions": along} for run, along in enumerate(counts, start=1)]
