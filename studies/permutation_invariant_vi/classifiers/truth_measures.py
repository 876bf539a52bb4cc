"""How far every method's fits are from HMC, in prediction and, aligned, in weights.

Convention: agreement and halved total variation are of class probabilities averaged over draws with those of all of
HMC's draws; the halves are the second half of HMC's chains against the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import xarray as xr

from ...lab.study import Outcomes
from ..design import MADE, Config, methods, width_key
from ..plan import against
from .widths import Fits, PerFit, WidthResults

WEIGHTS = ("energy", "mean", "sd", "sd_ratio")
"""Measures of `truth.WeightDistance`."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances from HMC: of every fit, or single numbers as arrays of one.

    Attributes
    ----------
    agreement, total_variation
        In prediction.
    accuracy, log_score, draw_accuracy
        Scores of the predictions themselves.
    energy, mean, sd, sd_ratio
        In weights: see `truth.WeightDistance`.
    """

    agreement: PerFit
    total_variation: PerFit
    accuracy: PerFit
    log_score: PerFit
    draw_accuracy: PerFit
    energy: PerFit
    mean: PerFit
    sd: PerFit
    sd_ratio: PerFit

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of HMC at one width.

    Attributes
    ----------
    scores : mapping
        Accuracy, log score and accuracy of one draw.
    halves : Distances
        Of the second half of the chains from the first.
    prior : mapping
        Measures in weights of draws from the prior, aligned alike.
    spread_left : float
        Squared distance of draws to their mean after alignment over that before.
    """

    scores: Mapping[str, float]
    halves: Distances
    prior: Mapping[str, float]
    spread_left: float


@dataclass(frozen=True, eq=False)
class TruthResults:
    """All distances.

    Attributes
    ----------
    truths : mapping
        By width.
    found : mapping
        By width and name of the method.
    labels : mapping
        Labels of the methods.
    """

    truths: Mapping[int, Truth]
    found: Mapping[tuple[int, str], Distances]
    labels: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "truth": {
                f"{width}": {
                    "scores": dict(truth.scores),
                    "halves": truth.halves.to_dict(),
                    "prior": dict(truth.prior),
                    "spread_left": truth.spread_left,
                }
                for width, truth in self.truths.items()
            },
            "fits": [
                {"width": width, "method": name, **found.to_dict()}
                for (width, name), found in self.found.items()
            ],
        }


def measure_truth(config: Config, outcomes: Outcomes, results: WidthResults) -> TruthResults:
    """Measure the fits of every width at which HMC ran."""
    there = {cell.key for cell in outcomes}
    truths: dict[int, Truth] = {}
    found: dict[tuple[int, str], Distances] = {}
    labels: dict[str, str] = {}
    for width in config.truth_widths:
        key = width_key(width, "truth", MADE)
        if key not in there:
            continue
        truths[width] = _truth(outcomes.by_key(key))
        for method in methods(config, width):
            key = width_key(width, against(method), MADE)
            if key in there:
                fits = results.fits[width, method.name]
                found[width, method.name] = _distances(outcomes.by_key(key), fits)
                labels[method.name] = method.label
    return TruthResults(truths, found, labels)


def _truth(tree: xr.DataTree) -> Truth:
    group, weights = tree["predictive"].to_dataset(), tree["weights"].to_dataset()
    names = {
        "accuracy": "accuracy",
        "log_score": "log_score",
        "draw_accuracy": "single_draw_accuracy",
    }
    halves = Distances(
        agreement=group["agreement"].values,
        total_variation=group["total_variation"].values,
        **{ours: group[name].sel(part=["second"]).values for ours, name in names.items()},
        **{name: weights[name].sel(pair=["halves"]).values for name in WEIGHTS},
    )
    return Truth(
        scores={ours: float(group[name].sel(part="all")) for ours, name in names.items()},
        halves=halves,
        prior={name: float(weights[name].sel(pair="prior")) for name in WEIGHTS},
        spread_left=float(tree.attrs["spread_left"]),
    )


def _distances(tree: xr.DataTree, fits: Fits) -> Distances:
    predictive, weights = tree["predictive"].to_dataset(), tree["weights"].to_dataset()
    return Distances(
        agreement=predictive["agreement"].values,
        total_variation=predictive["total_variation"].values,
        accuracy=fits.accuracy,
        log_score=fits.log_score,
        draw_accuracy=fits.draw_accuracy,
        **{name: weights[name].values for name in WEIGHTS},
    )
