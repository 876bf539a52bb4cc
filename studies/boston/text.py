"""The study's tables, figures and words."""

from collections.abc import Iterator

from onebasin.analysis.compare.pairs import MIN_PAIRS
from onebasin.analysis.figures.cells import plot_cells
from onebasin.analysis.report import FigureItem
from onebasin.analysis.report.cells import Flag
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION

from .. import lab
from ..lab import Chapter, Field, Frames, Pairs, Row
from ..lab.page import Extra
from . import paper
from .claims import splits
from .design import HIDDEN, Config

RHAT_GOOD, RHAT_USABLE = 1.01, 1.05
_SPLITS, _TRUST = "Split by split", "Can the draws be trusted?"


def _scored(frames: Frames, engine: str, score: str) -> Pairs:
    cells = frames["cells"].where(engine=engine)
    return lab.pair(cells, score, "problem", "free", "givens", by="split")


def _summaries(frames: Frames) -> Iterator[Row]:
    """Give the paper's means and tests, and ours by engine, for either score."""
    printed = {
        "mse": ("MSE", paper.MSE),
        "outside_95": ("outside the 95 % interval", paper.OUTSIDE),
    }
    for score, (name, table) in printed.items():
        sources = {"the paper's table": Pairs(table["free"], table["givens"])}
        for engine in frames["cells"].levels("engine"):
            sources[f"here, {lab.ENGINE_WORDS[engine]}"] = _scored(frames, engine, score)
        for source, pairs in sources.items():
            if pairs.num:
                means = dict(zip(("free", "givens"), pairs.means, strict=True))
                numbers = {"splits": pairs.num, "wins": pairs.wins, "p": pairs.p_value}
                yield {"score": name, "source": source, **means, **numbers}


def _rhat_flag(rhat: float) -> Flag:
    return "good" if rhat <= RHAT_GOOD else "warn" if rhat <= RHAT_USABLE else "bad"


SUMMARY = lab.View(
    "Means over splits. The paper's rows are recomputed from its printed tables, by the same "
    "code: there the MSE is equal in one split, and the tests differ from those in its text",
    (
        Field("score", "score"),
        Field("source", "source"),
        Field("splits", "splits"),
        Field("free", "free", decimals=3, unit="mean"),
        Field("givens", "givens", decimals=3, unit="mean"),
        Field("givens lower", "wins", unit="splits"),
        Field("p", "p", digits=2, unit="paired Wilcoxon"),
    ),
    over=_summaries,
)
SPLIT_BY_SPLIT = lab.View(
    "Every split, on its test part of 101 tracts",
    (
        Field("posterior", "label"),
        Field("MSE", "mse", decimals=3, unit="standardised"),
        Field("MSE", "mse_data_units", decimals=2, unit="($1,000)²"),
        Field("outside", "outside_95", decimals=2, unit="95 % interval"),
        Field("coverage", "coverage_50", decimals=2, unit="50 % interval"),
        Field("log score", "log_score", decimals=3, unit="nats, standardised"),
        Field("R-hat of f", "prediction_rhat", decimals=3, unit="worst point", flag=_rhat_flag),
        Field("bulk ESS of f", "prediction_ess", decimals=0, unit="median point"),
    ),
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cells = frames["cells"]
    yield f"{lab.count_verdicts(frames)[:-1]}, on {splits(len(cells.levels('split')))}."
    for engine in cells.levels("engine"):
        mse, outside = (_scored(frames, engine, score) for score in ("mse", "outside_95"))
        if mse.num and outside.num:
            yield (
                f"{lab.ENGINE_WORDS[engine]}: mean test MSE {mse.means[0]:.3f} with free and {mse.means[1]:.3f} with "
                f"Givens weights (standardised), and {100 * outside.means[0]:.1f} % and {100 * outside.means[1]:.1f} % "
                "of the test points outside the 95 % interval."
            )
    worst = max(cells.column("prediction_rhat"), default=float("nan"))
    yield f"The largest R-hat of any prediction is {worst:.2f}."


def chapters(config: Config, frames: Frames) -> Iterator[Chapter]:
    """Write the chapters of the page."""
    yield Chapter(
        "The question",
        f"Does the constraint that removes a ReLU network's scaling freedom make a network of {HIDDEN} hidden units "
        "predict better? Section 4.2 of Pourzanjani, Jiang and Petzold (2017) says so for the Boston Housing data, "
        "with NUTS on 15 random 80/20 splits. The paper does not state its priors, its splits or the length of its "
        "chains; here priors are N(0, 1), the noise is inferred, and inputs and target are standardised on the "
        "training part. The data are used to compare with the paper alone: one feature encodes the share of Black "
        "residents, and the target is cut off at 50.",
    )
    yield Chapter(
        "What the paper says, and what was measured",
        f"With fewer than {MIN_PAIRS} splits a comparison is void: no paired test could come out.",
        (lab.STATEMENTS, lab.TRIALS, SUMMARY),
    )
    yield Chapter(_SPLITS, views=(SPLIT_BY_SPLIT,))
    yield Chapter(
        _TRUST,
        "R-hat and ESS of single parameters condemn chains that number the units "
        "differently; the table above has those of the predictions.",
    )


TEXT = lab.Text(
    title=f"Boston Housing, {HIDDEN} ReLU units, free and constrained",
    headline=headline,
    chapters=chapters,
    definitions=DIAGNOSTICS + PREDICTION,
)


def figures(config: Config, outcomes: lab.Outcomes, frames: Frames) -> dict[str, tuple[Extra, ...]]:
    """Draw the scores split by split, and tabulate the health of the chains."""
    plots = {
        "mse": ("mean squared error, standardised units", None),
        "outside_95": ("share of test points outside the 95 % interval", 0.05),
    }
    extras: dict[str, tuple[Extra, ...]] = {_TRUST: lab.health(outcomes, outcomes)}
    if frames["cells"]:
        extras[_SPLITS] = tuple(
            _dot_plot(frames, score, *labels) for score, labels in plots.items()
        )
    return extras


def _dot_plot(frames: Frames, score: str, x_label: str, limit: float | None) -> FigureItem:
    groups: dict[str, dict[str, float]] = {}
    for row in frames["cells"]:
        group = groups.setdefault(f"{row['problem']}, {lab.ENGINE_WORDS[row['engine']]}", {})
        group[f"split {row['split']}"] = row[score]
    return FigureItem(
        plot_cells(groups, x_label=x_label, limit=limit),
        caption=f"{x_label[0].upper()}{x_label[1:]}, split by split.",
        alt=f"Dot plot of the {x_label}, for {', '.join(groups)}",
    )
