"""The study's page: tables, words and pictures; the paper does not say in what units its errors are."""

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.truth.problems.relu_networks import DEFINITION

from .. import lab
from ..lab import EFFECTS, MIN_PAIRS, Chapter, Field, Frames, Pairs, Row, RowTable, at_most
from ..lab.figures import plot_cells
from ..lab.shared import (
    LEVELS,
    MAX_RHAT,
    RHAT,
    averaged,
    chains_that_disagree,
    mixing,
    posterior_name,
    with_interval,
)
from . import design
from .design import HIDDEN, OVERLAP, SHALLOW, SHORT, VARIATIONS, BostonConfig
from .measures import CLAIMS, DISAGREEING, MSE, OUTSIDE, PAIRS, STATED, measure

_SAMPLED = lab.select("cells", method="nuts")


def _scored(frames: Frames, engine: str, score: str, levels: tuple[str, str]) -> Pairs:
    return lab.pair(_SAMPLED(frames).where(engine=engine), score, "problem", *levels, by="split")


def _summaries(frames: Frames) -> Iterator[Row]:
    printed = {"mse": ("MSE", MSE), "outside_95": ("outside the 95 % interval", OUTSIDE)}
    for score, (name, table) in printed.items():
        sources = {"the paper's table": Pairs(table["free"], table["givens"])}
        for engine in _SAMPLED(frames).levels("engine"):
            for levels in PAIRS:
                source = f"{' and '.join(levels)}, {lab.ENGINE_WORDS[engine]}"
                sources[source] = _scored(frames, engine, score, levels)
        for source, pairs in sources.items():
            if pairs.num:
                found = pairs.change(overlap=OVERLAP)
                yield {
                    "score": name,
                    "source": source,
                    "splits": pairs.num,
                    **dict(zip(("free", "givens"), pairs.means, strict=True)),
                    "wins": pairs.wins,
                    "change": with_interval(found),
                    "p": found.p_value,
                }


def _no_variations(frames: Frames) -> Iterator[Row]:
    """Take every posterior that is not a variation, but for the seamless one."""
    left_out = {*VARIATIONS} - {"givens_seamless"}
    return (row for row in frames["cells"] if row["problem"] not in left_out)


SUMMARY = RowTable(
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
_LOG_SCORE = Field("log score", "log_score", decimals=3, unit="nats, standardised")
_AVERAGE = (Field("posterior", posterior_name), Field("splits", "datasets"))
_ALIKE = ("problem", "method", "engine")
METHODS = averaged(
    "Every method, means over its splits",
    _no_variations,
    _ALIKE,
    (
        *_AVERAGE,
        *_MSE,
        _LOG_SCORE,
        Field("log score", "log_score_data_units", decimals=3, unit="nats, $1,000"),
        Field("CRPS", "crps", decimals=3, unit="standardised"),
        Field("width", "width_95", decimals=2, unit="95 % interval, standardised"),
    ),
)
CALIBRATION = averaged(
    "Calibration: the share of test points inside central predictive intervals, means over splits",
    _no_variations,
    _ALIKE,
    (*_AVERAGE, *(Field(f"{level} %", f"covered_{level}", decimals=3) for level in LEVELS)),
)
MIXING = mixing(("problem", "engine"), "NUTS: how far the chains have got, over splits")


SPLIT_BY_SPLIT = RowTable(
    "Every split, on its test part of 101 tracts",
    (
        Field("posterior", "label"),
        *_MSE,
        Field("outside", "outside_95", decimals=2, unit="95 % interval"),
        Field("coverage", "coverage_50", decimals=2, unit="50 % interval"),
        _LOG_SCORE,
        Field(
            "R-hat of f",
            "prediction_rhat",
            decimals=3,
            unit="worst point",
            flag=lambda rhat: "good" if rhat <= RHAT else "warn" if rhat <= MAX_RHAT else "bad",
        ),
        Field("bulk ESS of f", "prediction_ess", decimals=0, unit="median point"),
    ),
)

READINGS: tuple[tuple[str, str, Callable[[Row], float | None]], ...] = (
    ("MSE, standardised", "the paper's word, target standardised", lambda row: row["mse"]),
    ("root of it", "a root mean square, in sds of the target", lambda row: _root(row["mse"])),
    ("MSE, ($1,000)²", "the data's own units", lambda row: row["mse_data_units"]),
    ("root of it", "in $1,000", lambda row: _root(row["mse_data_units"])),
)
"""Name and meaning of a reading, and the number that it is of a row."""


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _readings(frames: Frames) -> Iterable[Row]:
    """Give means over splits in every reading: of straight lines, of our networks by NUTS, and the paper's."""
    paper = float(np.mean(MSE["free"]))
    for name, meaning, number in READINGS:
        ours = {p: _mean(_SAMPLED(frames).where(problem=p), number) for p in ("free", "givens")}
        line = _mean(frames["lines"], number)
        yield {
            "reading": name,
            "meaning": meaning,
            "line": line,
            **ours,
            "paper": f"{paper:.2f} ({min(MSE['free']):.2f} to {max(MSE['free']):.2f})",
            "over_line": None if line is None else paper / line,
        }


def _mean(rows: Iterable[Row], number: Callable[[Row], float | None]) -> float | None:
    """Average over splits; in a split first over engines, which may have run different numbers of them."""
    splits: dict[int, list[float]] = {}
    for row in rows:
        if (value := number(row)) is not None:
            splits.setdefault(row["split"], []).append(value)
    return float(np.mean([np.mean(values) for values in splits.values()])) if splits else None


UNITS = RowTable(
    "The paper's free networks, its numbers read in several units, compared with a straight line and our networks; "
    "means over splits. Above 1 in the last column: worse than a straight line",
    (
        Field("read as", "reading"),
        Field("which is", "meaning"),
        Field("straight line", "line"),
        Field("free", "free", unit="here, NUTS"),
        Field("givens", "givens", unit="here, NUTS"),
        Field("free", "paper", unit="the paper's number, range"),
        Field("over the line", "over_line", 2, unit="the paper's", flag=at_most(1, otherwise="warn")),
    ),
    over=_readings,
)  # fmt: skip

COMPARISONS = (
    ("both, as in the paper", "free", "givens"),
    ("the constraint alone, functions as of free weights", "free", "givens-wide"),
    ("the constraint alone, functions as of unit norm", "free-narrow", "givens"),
    ("the prior alone, free weights", "free", "free-narrow"),
    ("the prior alone, unit norm", "givens-wide", "givens"),
    ("the seam of the angle taken away", "givens", "givens_seamless"),
    (f"{SHORT} draws after {SHORT} of warmup", "free", "free-short"),
    (f"{SHORT} draws after {SHORT} of warmup", "givens", "givens-short"),
    (f"trees cut off at depth {SHALLOW}", "free", "free-shallow"),
    (f"trees cut off at depth {SHALLOW}", "givens", "givens-shallow"),
    ("both, chains cut short", "free-short", "givens-short"),
    ("both, trees cut off", "free-shallow", "givens-shallow"),
)
"""The difference, and the two posteriors that are compared, on the splits that have both."""
_COMPARED = {
    "mse": ("MSE", "standardised"),
    "outside_95": ("outside", "95 % interval"),
    "log_score": ("log score", "nats"),
}
"""The measures that are compared, with heading and unit."""


def _differences(frames: Frames) -> Iterable[Row]:
    """Compare posteriors that differ in one thing, on the splits of the variations; none where there are none."""
    varied = _SAMPLED(frames).where(problem=tuple(VARIATIONS))
    for engine in varied.levels("engine"):
        cells = _SAMPLED(frames).where(engine=engine, split=varied.levels("split"))
        for what, first, second in COMPARISONS:
            pairs = {m: lab.pair(cells, m, "problem", first, second, by="split") for m in _COMPARED}
            if all(found.num for found in pairs.values()):
                rhats = cells.where(problem=second).column("prediction_rhat")
                row = {"what": what, "first": first, "second": second, "splits": pairs["mse"].num}
                for measure, found in pairs.items():
                    effect = found.change(overlap=OVERLAP)
                    row |= {measure: effect.estimate, f"{measure}_words": with_interval(effect)}
                yield {**row, "rhat": max(rhats, default=None)}


WHY = RowTable(
    "One thing changed at a time: the mean change from the first posterior to the second over splits, with a 95 % "
    "interval that allows for the rows that splits share",
    (
        Field("what differs", "what"),
        Field("from", "first"),
        Field("to", "second"),
        Field("splits", "splits"),
        *(
            Field(heading, f"{measure}_words", unit=f"change, {unit}")
            for measure, (heading, unit) in _COMPARED.items()
        ),
        Field(
            "R-hat of f", "rhat", decimals=2, unit="largest, second",
            flag=at_most(MAX_RHAT, otherwise="warn"),
        ),
    ),
    over=_differences,
)  # fmt: skip
VIEWS = (
    lab.STATEMENTS, EFFECTS, SUMMARY, UNITS, WHY, METHODS, CALIBRATION, MIXING, DISAGREEING, SPLIT_BY_SPLIT,
    lab.FAILURES,
)  # fmt: skip


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    yield chains_that_disagree(frames, STATED)
    splits = lab.counted(len(frames["cells"].levels("split")), "split")
    yield f"{lab.count_verdicts(frames)[:-1]}, on {splits}."
    for engine in _SAMPLED(frames).levels("engine"):
        mse, outside = (_scored(frames, engine, score, PAIRS[0]) for score in ("mse", "outside_95"))
        if mse.num and outside.num:
            yield (
                f"{lab.ENGINE_WORDS[engine]}: mean test MSE {mse.means[0]:.3f} with free and {mse.means[1]:.3f} with "
                f"Givens weights (standardised), and {100 * outside.means[0]:.1f} % and {100 * outside.means[1]:.1f} % "
                f"of the test points outside the 95 % interval, over {lab.counted(mse.num, 'split')}."
            )
    yield why(frames)
    yield chains_of_variations(frames)
    yield units(frames)


def why(frames: Frames) -> str:
    """Say in a sentence what of the difference is the constraint's, and what its prior's; empty if neither ran."""
    parts = {(row["first"], row["second"]): row for row in _differences(frames)}
    wanted = (("free", "givens"), ("free", "free-narrow"), ("free-narrow", "givens"))
    if not all(pair in parts for pair in wanted):
        return ""
    both, prior, alone = (parts[pair] for pair in wanted)
    return (
        f"On {lab.counted(both['splits'], 'split')} the test MSE changes by {both['mse']:+.3f} from free to Givens "
        f"weights: {prior['mse']:+.3f} with free weights whose priors give functions as of norm 1, and "
        f"{alone['mse']:+.3f} more by the constraint itself."
    )


def chains_of_variations(frames: Frames) -> str:
    """Say in a sentence whose chains disagree among the variations; empty where none ran."""
    found = []
    for cut, words in ((True, "cut short on purpose"), (False, "given their time")):
        names = tuple(name for name, one in VARIATIONS.items() if one.cut is cut)
        if rhats := frames["cells"].where(problem=names).column("prediction_rhat"):
            found.append(f"{sum(rhat > MAX_RHAT for rhat in rhats)} of {len(rhats)} {words}")
    return (
        f"Variations, of which no statement is made, are counted apart: R-hat of f is above {MAX_RHAT:g} in "
        f"{' and '.join(found)}."
    ) * bool(found)


def units(frames: Frames) -> str:
    """Say in a sentence what units the paper's numbers can be in; empty where nothing was measured."""
    lines, cells = frames["lines"], _SAMPLED(frames).where(problem="free")
    if not lines or not cells:
        return ""
    line, ours = (_mean(rows, lambda row: row["mse"]) or 0.0 for rows in (lines, cells))
    theirs = float(np.mean(MSE["free"]))
    return (
        f"In units of a standardised target a straight line has a test MSE of {line:.2f} and our free network "
        f"{ours:.2f}; the paper's {theirs:.2f} is {'above' if theirs > line else 'below'} the line's. As the root of "
        f"an MSE it stands beside {math.sqrt(line):.2f} and {math.sqrt(ours):.2f}; the tables have both readings."
    )


def chapters(
    config: BostonConfig, outcomes: lab.Outcomes, frames: Frames
) -> Iterator[Chapter | None]:
    """Write the chapters of the page."""
    first = [cell for cell in outcomes if cell.method == "nuts" and cell.split == 1]
    chains = [row for row in _SAMPLED(frames) if row["problem"] not in VARIATIONS]
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
    plots = (_dot_plot(chains, score, *labels) for score, labels in _PLOTTED.items())
    yield Chapter("Split by split", "", (SPLIT_BY_SPLIT,), plots if chains else ())
    yield Chapter(
        "Can the draws be trusted?",
        "R-hat and ESS of single parameters condemn chains that number the units differently; those of the "
        f"predictions f do not. Where R-hat of f is above {MAX_RHAT:g}, chains have not found the same posterior.",
        (MIXING, DISAGREEING),
        lab.health(outcomes, first) if first else (),
    )
    yield lab.failed(frames)


_PLOTTED = {
    "mse": ("mean squared error, standardised units", None),
    "outside_95": ("share of test points outside the 95 % interval", 0.05),
}
"""The scores that are drawn split by split: the words of the axis, and a limit to mark."""


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


STUDY = lab.Study(
    design.configure, design.cells, design.target, measure, CLAIMS, VIEWS,
    f"Boston Housing, {HIDDEN} ReLU units, free and constrained",
    headline, chapters, (DEFINITION, *DIAGNOSTICS, *PREDICTION),
    run_name=lambda cell: cell.label if cell.split == 1 else None,
    shown=(MIXING, SUMMARY, lab.VERDICTS),
)  # fmt: skip
