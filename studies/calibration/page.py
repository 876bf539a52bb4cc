"""The page: the study in words, its tables and its figures."""

from __future__ import annotations

from collections.abc import Iterator

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots.calibration import plot_calibration

from .. import lab
from ..lab import Chapter, Field, RowTable
from ..lab.page import Tabulate
from . import design
from .design import CalibrationConfig, from_tree
from .measures import CLAIMS, measure

ALL = RowTable(
    "Verdicts: what was seen, and what would have been. Networks' rows simulate from the same random numbers, so that "
    "chance in one shows in others",
    (
        Field("calibration", "label"),
        Field("verdict", "verdict", flag=lambda word: "good" if word == "calibrated" else "warn"),
        Field("judged", "usable", unit="simulations"),
        Field("outside", lambda row: f"{row['outside']} of {row['quantities']}", unit="quantities"),
        Field(
            "sd",
            lambda row: None if row["seen_ratio"] is None else 100 * (row["seen_ratio"] - 1),
            decimals=0,
            unit="%, seen if wrong by",
        ),
        Field("mean", "seen_shift", decimals=2, unit="sd, seen if wrong by"),
        Field("failed", "failed"),
        Field("unconverged", "unconverged"),
        Field("divergent", "divergent", unit="simulations"),
    ),
)


WORST = RowTable(
    "By how much: the test quantity whose ranks are furthest from uniform",
    (
        Field("calibration", "label"),
        Field("quantity", "worst"),
        Field("p", "worst_p", digits=2),
        Field("posterior", "worst_sentence"),
    ),
    over=lambda frames: [row for row in lab.read("cells", frames) if row["outside"]],
)
OUTSIDE = RowTable(
    "Every test quantity that left its band: shift of truths from posterior means, and their spread, in posterior sds",
    (
        Field("calibration", "label"),
        Field("quantity", "quantity"),
        Field("p", "p_value", digits=2),
        Field("shift", "shift", decimals=2),
        Field("from", "shift_low", decimals=2),
        Field("to", "shift_high", decimals=2),
        Field("spread", "ratio", decimals=2),
        Field("from", "ratio_low", decimals=2),
        Field("to", "ratio_high", decimals=2),
    ),
    over=lambda frames: [row for row in lab.read("quantities", frames) if row["outside"]],
)
VIEWS: tuple[Tabulate, ...] = (ALL, WORST, lab.CLAIMS, OUTSIDE, lab.TRIALS, lab.FAILURES)


_SHOWN = 6
"""Panels of a figure."""
_DEFINITIONS = (
    (
        "Calibrated",
        "Parameters are drawn from the prior, data from the likelihood, and a method is run on the data. If its draws "
        "are of the posterior, the rank of the parameters among them is uniform, and so is that of any function of "
        "parameters and data (Talts et al. 2018; Modrák et al. 2023).",
    ),
    (
        "Outside",
        "The ECDF of a quantity's ranks leaves its simultaneous band (Säilynoja et al. 2022). The bands of a row are "
        "drawn so that with a right posterior one of them is left in 5 of 100 runs at the most.",
    ),
    (
        "Seen",
        "By how much an sd or a mean must be wrong, in a quantity that is about normal, for its ranks to leave the "
        "band 9 times in 10.",
    ),
    (
        "Shift and spread",
        "Mean and standard deviation of (truth - posterior mean) / posterior sd over simulations, 0 and 1 if the "
        "posterior is right, with 95 % bootstrap intervals. A spread of 1.25 says that intervals are too narrow by "
        "20 %.",
    ),
)


def headline(frames: lab.Frames) -> Iterator[str]:
    """Say the result."""
    rows = list(lab.read("cells", frames))
    nuts = [row for row in rows if row["method"] == "nuts"]
    right = sum(row["verdict"] == "calibrated" for row in nuts)
    yield f"NUTS is calibrated in {right} of {len(nuts)} cases of a family and an engine."
    wrong = [row for row in rows if row["method"] != "nuts" and row["outside"]]
    if wrong:
        each = "; ".join(
            f"{row['method']}: {row['worst']}, {row['worst_sentence']}" for row in wrong
        )
        yield f"Approximations that are seen to be wrong, where they are most: {each}."
    yield lab.count_verdicts(frames)


def chapters(
    config: CalibrationConfig, outcomes: lab.Outcomes, frames: lab.Frames
) -> Iterator[Chapter | None]:
    """Lay out the page."""
    yield Chapter(
        "The question",
        "Is a posterior what it should be? Nobody knows the posterior of data; but of parameters that were drawn from "
        "the prior, and data that follow from them, it is known that the parameters are one more draw of it.\n\n"
        f"Every row is {config.simulations} simulations, with the seed {config.seed}. Networks have two ReLU units, 15 "
        "observations, N(0, 1) priors and an inferred noise; the programs are those of the suite's problems, with "
        "simulators in NumPy that share no line with them. Networks in all parametrisations and engines simulate from "
        "the same random numbers: what chance does to one of these rows it does to others.",
        (ALL,),
    )
    yield Chapter("What is claimed", views=(lab.CLAIMS,))
    title = "By how much approximations are wrong"
    yield Chapter(title, views=(WORST, OUTSIDE), extras=_figures(outcomes))
    yield Chapter("Every comparison", views=(lab.TRIALS,))
    yield lab.failed(frames)


def _figures(outcomes: lab.Outcomes) -> Iterator[FigureItem]:
    for cell in outcomes:
        found = from_tree(outcomes.tree(cell))
        if found.outside:
            yield FigureItem(
                plot_calibration(found, quantities=[one.name for one in found.off[:_SHOWN]]),
                caption=f"Ranks of {cell.label}: the quantities furthest from uniform.",
                alt=f"Differences of ECDFs from uniform, with bands, of {cell.label}",
            )


STUDY = lab.Study(
    design.configure, design.cells, design.target, measure, CLAIMS, VIEWS,
    "Calibration of methods and programs", headline, chapters, _DEFINITIONS,
    run_name=lambda cell: None,  # a cell holds ranks, no draws
    shown=(ALL, WORST, lab.CLAIM_VERDICTS),
    make=design.make,
)  # fmt: skip
