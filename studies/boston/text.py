"""The study's tables, figures and words."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.base.table import Flag
from onebasin.truth.pairs import MIN_PAIRS, Pairs
from onebasin.truth.problems.relu_networks import DEFINITION

from .. import lab
from ..lab import Chapter, Field, Frames, Row
from ..lab.cells_figure import plot_cells
from ..lab.effects import EFFECTS, change
from ..lab.page import Extra
from ..shared.heldout import LEVELS, MAX_RHAT, RHAT, chains_that_disagree, mixing
from . import paper
from .claims import STATED
from .design import HIDDEN, Config
from .units import UNITS, units
from .why import OVERLAP, VARIATIONS, WHY, chains_of_variations, why

_SPLITS, _TRUST = "Split by split", "Can the draws be trusted?"


def _scored(frames: Frames, engine: str, score: str, levels: tuple[str, str]) -> Pairs:
    cells = frames["cells"].where(engine=engine, method="nuts")
    return lab.pair(cells, score, "problem", *levels, by="split")


def _summaries(frames: Frames) -> Iterator[Row]:
    """Give the paper's means and tests, and ours by engine, for either score."""
    printed = {
        "mse": ("MSE", paper.MSE),
        "outside_95": ("outside the 95 % interval", paper.OUTSIDE),
    }
    ours = ("free", "givens"), ("ordered", "givens+ordered")
    for score, (name, table) in printed.items():
        sources = {"the paper's table": Pairs(table["free"], table["givens"])}
        for engine in frames["cells"].where(method="nuts").levels("engine"):
            for levels in ours:
                source = f"{' and '.join(levels)}, {lab.ENGINE_WORDS[engine]}"
                sources[source] = _scored(frames, engine, score, levels)
        for source, pairs in sources.items():
            if pairs.num:
                yield {"score": name, "source": source, **_summary(pairs)}


def _summary(pairs: Pairs) -> Row:
    free, constrained = pairs.means
    found = change(pairs.first, pairs.second, "difference", overlap=OVERLAP)
    return {
        "splits": pairs.num,
        "free": free,
        "givens": constrained,
        "wins": pairs.wins,
        "change": _interval(found.estimate, found.low, found.high),
        "p": pairs.p_value,
    }


def _interval(estimate: float, low: float, high: float) -> str:
    ends = "" if math.isnan(low) else f" ({low:+.3f} to {high:+.3f})"
    return f"{estimate:+.3f}{ends}"


def _methods(frames: Frames) -> Iterator[Row]:
    """Average over splits, for every posterior that is not a variation."""
    cells = frames["cells"]
    plain = [name for name in cells.levels("problem") if not _is_variation(name)]
    names = ("problem", "method", "engine")
    for alike in dict.fromkeys(tuple(row[name] for name in names) for row in cells):
        rows = cells.where(**dict(zip(names, alike, strict=True)))
        if alike[0] in plain:
            problem, method, engine = alike
            label = f"{problem}, {lab.METHOD_WORDS[method]}, {lab.ENGINE_WORDS[engine]}"
            yield {"label": label, "splits": len(rows)} | {
                name: _mean(rows, name) for name in (*_AVERAGED, *_COVERED)
            }


def _mean(rows: lab.Frame, name: str) -> float | None:
    known = [row[name] for row in rows if row.get(name) is not None]
    return float(np.mean(known)) if known else None


def _is_variation(problem: str) -> bool:
    return problem in VARIATIONS and problem != "givens_seamless"


_AVERAGED = ("mse", "mse_data_units", "log_score", "log_score_data_units", "width_95", "crps")
_COVERED = tuple(f"covered_{level}" for level in LEVELS)
SUMMARY = lab.View(
    "Tables 1 and 2: means over splits, without and with unit-norm weights. The paper's rows are recomputed from its "
    "printed tables, by the same code: there the MSE is equal in one split, and the tests differ from those in its "
    "text. The interval of the change allows for the rows that splits share; the test does not",
    (
        Field("score", "score"),
        Field("source", "source"),
        Field("splits", "splits"),
        Field("free", "free", decimals=3, unit="mean"),
        Field("givens", "givens", decimals=3, unit="mean"),
        Field("givens lower", "wins", unit="splits"),
        Field("change", "change", unit="95 % interval"),
        Field("p", "p", digits=2, unit="paired Wilcoxon"),
    ),
    over=_summaries,
)
_MSE = (
    Field("MSE", "mse", decimals=3, unit="standardised"),
    Field("MSE", "mse_data_units", decimals=2, unit="($1,000)²"),
)
METHODS = lab.View(
    "Every method, means over its splits",
    (
        Field("posterior", "label"),
        Field("splits", "splits"),
        *_MSE,
        Field("log score", "log_score", decimals=3, unit="nats, standardised"),
        Field("log score", "log_score_data_units", decimals=3, unit="nats, $1,000"),
        Field("CRPS", "crps", decimals=3, unit="standardised"),
        Field("width", "width_95", decimals=2, unit="95 % interval, standardised"),
    ),
    over=_methods,
)
CALIBRATION = lab.View(
    "Calibration: the share of test points inside central predictive intervals, means over splits",
    (
        Field("posterior", "label"),
        Field("splits", "splits"),
        *(
            Field(f"{level} %", name, decimals=3)
            for level, name in zip(LEVELS, _COVERED, strict=True)
        ),
    ),
    over=_methods,
)
MIXING = mixing(("problem", "engine"), "NUTS: how far the chains have got, over splits")


def _rhat_flag(rhat: float) -> Flag:
    return "good" if rhat <= RHAT else "warn" if rhat <= MAX_RHAT else "bad"


SPLIT_BY_SPLIT = lab.View(
    "Every split, on its test part of 101 tracts",
    (
        Field("posterior", "label"),
        *_MSE,
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
    yield chains_that_disagree(frames, STATED)
    yield f"{lab.count_verdicts(frames)[:-1]}, on {lab.counted(len(cells.levels('split')), 'split')}."
    sampled = cells.where(method="nuts")
    for engine in sampled.levels("engine"):
        mse, outside = (
            _scored(frames, engine, score, ("free", "givens")) for score in ("mse", "outside_95")
        )
        if mse.num and outside.num:
            yield (
                f"{lab.ENGINE_WORDS[engine]}: mean test MSE {mse.means[0]:.3f} with free and {mse.means[1]:.3f} with "
                f"Givens weights (standardised), and {100 * outside.means[0]:.1f} % and {100 * outside.means[1]:.1f} % "
                f"of the test points outside the 95 % interval, over {lab.counted(mse.num, 'split')}."
            )
    yield why(frames)
    yield chains_of_variations(frames)
    yield units(frames)


def chapters(config: Config, frames: Frames) -> Iterator[Chapter | None]:
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
        f"With fewer than {MIN_PAIRS} splits a comparison cannot be judged: no paired test could come out.",
        (lab.STATEMENTS, EFFECTS, SUMMARY),
    )
    yield Chapter(
        "What units are the paper's?",
        "The paper calls its numbers mean squared errors and does not say of what. A least squares line on the same "
        "splits tells what they can be.",
        (UNITS,),
    )
    yield Chapter(
        "What makes the difference",
        "Weights of norm 1 change two things at once: a freedom is gone, and under the same N(0, 1) priors other "
        "functions are likely. Thirteen free weights have a norm of about √13 = 3.6, so the free network's units are "
        "3.6 times as steep, and their kinks as much nearer to the middle of the data. `free-narrow` has incoming "
        "weights of scale 1/√13, which gives free weights the functions of norm 1; `givens-wide` has √13 in the last "
        "layer and 1/√13 for the hidden biases, which gives unit norm the functions of free weights. "
        "`givens_seamless` is the same posterior in a chart without a seam; `-short` chains are cut short and "
        "`-shallow` trees cut off, as if the sampler had not been given its time.",
        (WHY,),
    )
    yield Chapter("Methods and calibration", views=(METHODS, CALIBRATION))
    yield Chapter(_SPLITS, views=(SPLIT_BY_SPLIT,))
    yield Chapter(
        _TRUST,
        "R-hat and ESS of single parameters condemn chains that number the units differently; those of the "
        f"predictions f do not. Where R-hat of f is above {MAX_RHAT:g}, chains have not found the same posterior.",
        (MIXING,),
    )
    yield lab.failed(frames)


TEXT = lab.Text(
    title=f"Boston Housing, {HIDDEN} ReLU units, free and constrained",
    headline=headline,
    chapters=chapters,
    definitions=(DEFINITION, *DIAGNOSTICS, *PREDICTION),
    run_name=lambda cell: cell.label if cell.split == 1 else None,
)


def figures(config: Config, outcomes: lab.Outcomes, frames: Frames) -> dict[str, tuple[Extra, ...]]:
    """Draw the scores split by split, and tabulate the health of the chains."""
    plots = {
        "mse": ("mean squared error, standardised units", None),
        "outside_95": ("share of test points outside the 95 % interval", 0.05),
    }
    first = [cell for cell in outcomes if cell.method == "nuts" and cell.split == 1]
    extras: dict[str, tuple[Extra, ...]] = {_TRUST: lab.health(outcomes, first)} if first else {}
    chains = frames["cells"].where(method="nuts")
    if rows := [row for row in chains if row["problem"] not in VARIATIONS]:
        extras[_SPLITS] = tuple(_dot_plot(rows, score, *labels) for score, labels in plots.items())
    return extras


def _dot_plot(rows: Iterable[Row], score: str, x_label: str, limit: float | None) -> FigureItem:
    groups: dict[str, dict[str, float]] = {}
    for row in rows:
        group = groups.setdefault(f"{row['problem']}, {lab.ENGINE_WORDS[row['engine']]}", {})
        group[f"split {row['split']}"] = row[score]
    return FigureItem(
        plot_cells(groups, x_label=x_label, limit=limit),
        caption=f"{x_label[0].upper()}{x_label[1:]}, split by split.",
        alt=f"Dot plot of the {x_label}, for {', '.join(groups)}",
    )
