"""What is measured of all cells, as frames: see `run` of the first two parts, and `classifiers.measures`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from ..lab import Frame, Outcomes, Row, read
from ..lab.posteriors import from_tree
from .classifiers.measures import measure as measure_classifiers
from .design import INTERPOLATION, QUADRATURE, Config, alpha_problem, find
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
            frames |= from_tree(outcomes.tree(cell))
    frames["weight_fits"] = Frame.of(_weight_fits(config, outcomes, frames))
    within = next((row["vanishing"] / row["sigma"] for row in read("thresholds", frames)), None)
    return {**frames, **measure_classifiers(config, outcomes, within=within)}


def _weight_fits(config: Config, outcomes: Outcomes, frames: Mapping[str, Frame]) -> Iterator[Row]:
    settings = config.two_weights
    for case in read("cases", frames).where(noise=settings.noise):
        for method in METHODS:
            tree = find(outcomes, alpha_problem(case["alpha"]), method)
            if tree is not None:
                yield score_fits(settings, case, method, tree)
