"""What is measured of all cells, as frames: see `run` of the first two parts, and `classifiers.measures`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from ..lab import Frame, Outcomes, Row
from .classifiers.measures import measure as measure_classifiers
from .design import INTERPOLATION, QUADRATURE, Config, two_weight_key
from .making import from_tree
from .two_weights.design import METHODS
from .two_weights.fits import score_fits


def measures(config: Config, outcomes: Outcomes) -> Mapping[str, Frame]:
    """Fill the frames.

    Beside those of the parts there are `two_weights`, one row of that part's settings, and `weight_fits`, a row an
    alpha and method: see `two_weights.fits.score_fits`.
    """
    frames = {"two_weights": Frame.of([asdict(config.two_weights)])}
    for cell in outcomes:
        if cell.key in (INTERPOLATION, QUADRATURE):
            frames |= from_tree(outcomes.by_key(cell.key))
    frames["weight_fits"] = Frame.of(_weight_fits(config, outcomes, frames))
    found = frames.get("thresholds", Frame()).rows
    within = found[0]["vanishing"] / found[0]["sigma"] if found else None
    return {**frames, **measure_classifiers(config, outcomes, within=within)}


def _weight_fits(config: Config, outcomes: Outcomes, frames: Mapping[str, Frame]) -> Iterator[Row]:
    settings, there = config.two_weights, {cell.key for cell in outcomes}
    cases = frames.get("cases", Frame())
    for case in cases.where(noise=settings.noise) if cases else ():
        for method in METHODS:
            if (key := two_weight_key(case["alpha"], method)) in there:
                yield score_fits(settings, case, method, outcomes.by_key(key))
