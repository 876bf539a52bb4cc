"""From rows to numbers: distances of predictions from HMC's, scores against the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.analysis.predictive.agreement import agreement, entropy, total_variation
from onebasin.analysis.predictive.calibration import calibration_error

from ..lab.images import image_split
from ..lab.study import Outcomes
from .design import ALIGNMENTS, DYNAMICS, SWAPS, Config, aligned
from .plan import Row, rows


@dataclass(frozen=True)
class Score:
    """How one distribution over classes compares with HMC's, and with the labels.

    Attributes
    ----------
    agreement
        Share of test images with the same most probable class (the paper's equation 1).
    total_variation
        Halved; twice this is the paper's equation 2.
    accuracy, log_score, calibration_error
        Against the labels; log score in nats an image.
    """

    agreement: float
    total_variation: float
    accuracy: float
    log_score: float
    calibration_error: float


@dataclass(frozen=True)
class Measured:
    """One row's numbers; means over repeats.

    Attributes
    ----------
    row : Row
        Which.
    averaged : Score
        Of the probabilities averaged over draws.
    mean : Score
        Of the network with the mean's weights; of draws in labels of their own it says nothing.
    draw_accuracy
        Mean accuracy of a single draw.
    draw_accuracy_sd
        Standard deviation of the accuracy from draw to draw.
    mutual_information
        Of class and draw, mean over images, in nats: the entropy of the averaged probabilities less the mean
        entropy of a draw's.
    """

    row: Row
    averaged: Score
    mean: Score
    draw_accuracy: float
    draw_accuracy_sd: float
    mutual_information: float


@dataclass(frozen=True, eq=False)
class Results:
    """All that was measured.

    Attributes
    ----------
    measured : mapping
        Rows by name, in order.
    floor : Score
        The second half of HMC's chains against the first.
    switching : mapping
        Of each alignment by weights of HMC's draws: how labels changed, and what was gained.
    trees : mapping
        Groups of rows and pairs that figures need.
    """

    measured: Mapping[str, Measured]
    floor: Score | None
    switching: Mapping[str, Mapping[str, Any]]
    trees: Mapping[str, xr.DataTree]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "rows": {name: _plain(found) for name, found in self.measured.items()},
            "floor": vars(self.floor) if self.floor else None,
            "switching": {name: dict(found) for name, found in self.switching.items()},
        }


def _plain(found: Measured) -> dict[str, Any]:
    scores = {"averaged": vars(found.averaged), "mean": vars(found.mean)}
    names = ("draw_accuracy", "draw_accuracy_sd", "mutual_information")
    what = {"group": found.row.group, "label": found.row.label}
    return what | scores | {name: getattr(found, name) for name in names}


def measure_all(config: Config, outcomes: Outcomes) -> Results:
    """Measure every row whose cell succeeded."""
    labels = np.asarray(image_split(config.size, config.seed).test.y, dtype=np.int64)
    there = {cell.key: cell for cell in outcomes}
    trees = {row.name: outcomes.by_key(row.key) for row in rows(config) if row.key in there}
    truth = _probability(trees["hmc"])[0]
    found = {
        row.name: _measure(row, trees[row.name], truth, labels)
        for row in rows(config)
        if row.name in trees
    }
    floor = None
    if {"half-1", "half-2"} <= set(trees):
        halves = [_probability(trees[name])[0] for name in ("half-1", "half-2")]
        floor = score(halves[1], halves[0], labels)
    pairs = {name: k for name, k in (("dynamics", DYNAMICS), ("swaps", SWAPS)) if k in there}
    trees |= {name: outcomes.by_key(key) for name, key in pairs.items()}
    return Results(found, floor, _switching(outcomes, there), trees)


def score(
    probability: Float[np.ndarray, "obs out"],
    truth: Float[np.ndarray, "obs out"],
    labels: Int[np.ndarray, " obs"],
) -> Score:
    """Score probabilities against HMC's and against labels."""
    with np.errstate(divide="ignore"):  # a class that was ruled out: minus infinity, and said so
        log_score = float(np.log(probability[np.arange(len(labels)), labels]).mean())
    return Score(
        agreement=agreement(probability, truth),
        total_variation=total_variation(probability, truth, halved=True),
        accuracy=float((probability.argmax(axis=-1) == labels).mean()),
        log_score=log_score,
        calibration_error=calibration_error(probability, labels),
    )


def _measure(
    row: Row, tree: xr.DataTree, truth: np.ndarray, labels: Int[np.ndarray, " obs"]
) -> Measured:
    group = tree["predictive"].to_dataset()
    probability = group["probability"].values
    accuracy = group["draw_accuracy"].values
    information = (entropy(probability) - group["entropy"].values).mean()
    return Measured(
        row=row,
        averaged=_average([score(p, truth, labels) for p in probability]),
        mean=score(group["mean_probability"].values, truth, labels),
        draw_accuracy=float(accuracy.mean()),
        draw_accuracy_sd=float(accuracy.std()),
        mutual_information=float(information),
    )


def _probability(tree: xr.DataTree) -> Float[np.ndarray, "repeat obs out"]:
    return np.asarray(tree["predictive"].to_dataset()["probability"].values)


def _average(scores: list[Score]) -> Score:
    return Score(*np.mean([list(vars(s).values()) for s in scores], axis=0).tolist())


def _switching(outcomes: Outcomes, there: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = {}
    for rule in ALIGNMENTS:
        key = aligned("hmc", rule)
        if key in there:
            text = outcomes.by_key(key).attrs.get("switching")
            if text:
                found[rule] = json.loads(text)
    return found
