"""The study's page: tables, words and pictures."""

from collections.abc import Callable, Iterable, Iterator

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots import style
from onebasin.analysis.plots.uncertainty import plot_uncertainty
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.base.table import Flag

from .. import lab
from ..lab import MIN_PAIRS, Chapter, Field, Frames, select
from ..lab.figures import elbo_traces
from ..lab.frame import averages
from ..lab.shared import MAX_RHAT, averaged
from . import design
from .design import ALL, CHECK, GAP, INSIDE, NAME, OUTSIDE, TRUTH, VI, SkipsConfig, dataset
from .measures import CLAIMS, DIFFERENCES, measure

_COMMON = ("condition", "method", "problem")
_FIT = ("condition", "problem")
_OF_FIT = (Field("condition", "condition"), Field("network", "problem"))
_POSTERIOR = (
    Field("condition", "condition"),
    Field("by", lambda row: lab.METHOD_WORDS[row["method"]]),
    Field("network", "problem"),
    Field("data sets", "datasets"),
)


def _both(
    heading: str,
    name: str,
    decimals: int,
    unit: str = "",
    flag: Callable[[float], Flag] | None = None,
) -> tuple[Field, ...]:
    """Give a measure's two columns, inside and outside."""
    between = ", " if unit else ""
    return tuple(
        Field(
            heading, f"{name}_{where}", decimals=decimals, unit=f"{where}{between}{unit}", flag=flag
        )
        for where in (INSIDE, OUTSIDE)
    )


PREDICTIONS = averaged(
    "Figure 1 in numbers, means over data sets, at test points inside the data's range (|x| < 1) and outside it "
    "(1 < |x| < 2). Explained: share of the true function's variance that the predictive mean explains",
    "cells",
    _COMMON,
    (
        *_POSTERIOR,
        Field("explained", f"explained_{INSIDE}", decimals=3, unit=INSIDE),
        *_both("RMSE", "rmse", 3),
        *_both("log score", "log_score", 2, "nats"),
        *_both("coverage", "coverage_95", 3, "95 % interval"),
        *_both("epistemic sd", "epistemic", 3),
        *_both("aleatoric sd", "aleatoric", 3),
    ),
)
COLLAPSE = averaged(
    "What has collapsed, mean-field fits at the end, means over data sets",
    select("cells", method=VI),
    _FIT,
    (
        *_OF_FIT,
        Field("data sets", "datasets"),
        Field("active units", "active", decimals=1, unit="of all layers"),
        Field("units", "units", decimals=0),
        Field("KL to the prior", "kl", decimals=0, unit="nats, all weights"),
        Field("ELBO", "elbo", decimals=1, unit="nats"),
        Field("fit", "wall_time", decimals=0, unit="seconds"),
    ),
)
BY_LAYER = averaged(
    "The same layer by layer, of the median unit: KL of the weights into it and out of it to their prior, and their "
    "signal-to-noise",
    "layers",
    (*_FIT, "layer"),
    (
        *_OF_FIT,
        Field("hidden layer", "layer"),
        Field("active units", "active", decimals=1),
        Field("units", "units", decimals=0),
        Field("KL in", "kl_in", decimals=2, unit="nats"),
        Field("KL out", "kl_out", decimals=2, unit="nats"),
        Field("signal to noise in", "snr_in", decimals=2),
        Field("signal to noise out", "snr_out", decimals=2),
    ),
)


_BOUNDS = (
    Field("at least", "lower", decimals=1, unit="nats"),
    Field("at most", "upper", decimals=1, unit="nats"),
    Field("log |G|", "log_order", decimals=1, unit="nats"),
    Field(
        "at most",
        lambda row: None if row["upper"] is None else 100 * row["upper"] / row["log_order"],
        decimals=1,
        unit="% of log |G|",
    ),
)
GAP_BY_LAYER = averaged(
    "Equation 6 at the end of the training, means over data sets: KL[q₀ ‖ q] between the fit and its symmetric mixture",
    select("gaps", end=True),
    (*_FIT, "layer"),
    (*_OF_FIT, Field("hidden layer", "layer"), *_BOUNDS),
)


def _training(frames: Frames) -> Iterable[lab.Row]:
    """Give equation 6 next to what had collapsed by then."""
    gaps = lab.read("gaps", frames).where(layer=ALL)
    for row in frames["training"]:
        gap = gaps.find(**{name: row[name] for name in ("data", "problem", "iteration")}) or {}
        yield {**row, **{name: gap.get(name) for name in ("lower", "upper")}}


TRAINING = averaged(
    "How fits change as they are trained, means over data sets; equation 6 of networks with a symmetry",
    _training,
    (*_FIT, "iteration"),
    (
        *_OF_FIT,
        Field("step", "iteration"),
        Field("weight of the divergence", "divergence_weight", decimals=2),
        Field("ELBO", "elbo", decimals=1, unit="nats"),
        Field("active units", "active", decimals=1),
        Field("KL to the prior", "kl", decimals=0, unit="nats"),
        Field("explained", "explained", decimals=3, unit="by the mean weights"),
        *_BOUNDS[:2],
    ),
)
CHAINS = averaged(
    "Can the samplers' draws be trusted? R-hat of f, largest over test points and data sets",
    select("cells", method=(TRUTH, CHECK)),
    _COMMON,
    (
        *_POSTERIOR,
        *_both("R-hat of f", "max_rhat", 3, flag=lab.at_most(MAX_RHAT)),
        *_both("points above", "rhat_above", 3, f"R-hat {MAX_RHAT:g}, mean share"),
        *_both("bulk ESS of f", "ess", 0, "mean"),
        Field("R-hat", "max_rhat_value", decimals=2, unit="largest of a weight"),
        Field("divergences", "max_divergences", decimals=0, unit="most"),
        Field("time", "wall_time", decimals=0, unit="seconds, mean"),
    ),
)
FROM_TRUTH = averaged(
    "Distance from NUTS on the same model and data, means over data sets: of mean-field fits, and of MCLMC, whose bias "
    "of the step size it shows",
    lambda frames: frames["cells"].known(f"from_truth_rms_{INSIDE}"),
    _COMMON,
    (
        *_POSTERIOR,
        *_both("shift of the mean", "from_truth_in_sds", 2, "posterior sds, rms"),
        *_both("shift", "from_truth_rms", 3, "units of y, rms"),
        *_both("sd of f", "from_truth_sd_ratio", 2, "ratio"),
        *_both("predictive sd", "from_truth_predictive_sd_ratio", 2, "ratio"),
    ),
)
VIEWS = (
    lab.STATEMENTS, lab.EFFECTS, PREDICTIONS, DIFFERENCES, COLLAPSE, BY_LAYER, GAP_BY_LAYER, TRAINING, CHAINS,
    FROM_TRUTH, lab.FAILURES,
)  # fmt: skip

_DEFINITIONS = (
    (
        "plain, ordered, orthogonal, both",
        "The network as it is; with hidden biases in increasing order; with fixed semi-orthogonal skip matrices in "
        "every layer; with both.",
    ),
    (
        "Epistemic, aleatoric",
        "The two parts of a prediction's standard deviation, by the law of total variance: the spread over draws of "
        "the function, and the root mean square of the noise's standard deviation.",
    ),
    (
        "Active unit, KL of a unit",
        "A unit's KL is that of its incoming and outgoing weights under the fit from their prior, in nats. A unit is "
        "active if the mean of a weight to an active unit, or to an output, is more than one sd from zero.",
    ),
    (
        "Gap, log |G|",
        "KL[q₀ ‖ q], by which the ELBO of the fit's symmetric mixture exceeds its own: between 0 and the logarithm of "
        "the number of permutations of the hidden units.",
    ),
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cells = frames["cells"]
    sets = len(cells.levels("dataset"))
    if sets < MIN_PAIRS:
        yield (
            f"With fewer than {MIN_PAIRS} data sets no statement can be decided, and this run has {sets}: give "
            f"--datasets {MIN_PAIRS} or more."
        )
    else:
        yield f"Statements are tried on {sets} data sets, {len(cells)} posteriors in all."
    yield _chains(frames)
    for condition in cells.levels("condition"):
        yield _fits(frames, condition)
    names = ("lower", "upper", "log_order")
    over = averages(select("gaps", layer=ALL, end=True), ("condition", "problem"), names)
    for row in over(frames):
        yield (
            f"{_upper(row['condition'])}: between the {row['problem']} fit and its symmetric mixture the gap of "
            f"equation 6 ends between {row['lower']:.1f} and {row['upper']:.1f} nats, of at most "
            f"{row['log_order']:.1f} (log |G|)."
        )
    yield lab.count_verdicts(frames)


def _chains(frames: Frames) -> str:
    sampled = frames["cells"].where(method=TRUTH).known(f"rhat_{INSIDE}")
    bad = [row for row in sampled if _rhat(row) > MAX_RHAT]
    if not bad:
        return ""
    worst = max(bad, key=_rhat)
    return lab.Caution(
        f"Chains of NUTS do not agree on the predictions in {len(bad)} of {len(sampled)} posteriors (R-hat of f above "
        f"{MAX_RHAT:g} at some point, at most {_rhat(worst):.2f}, {worst['label']}): there they are no truth, "
        "and comparisons with them are left out."
    )


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _rhat(row: lab.Row) -> float:
    return max(row[f"rhat_{where}"] for where in (INSIDE, OUTSIDE))


def _fits(frames: Frames, condition: str) -> str:
    """Say what share of the true function each fit explains, and how many units are active."""
    names = (f"explained_{INSIDE}", "active", "units")
    fits, sampled = (
        averages(select("cells", method=method, condition=condition), ("problem",), names)
        for method in (VI, TRUTH)
    )
    parts = [
        f"{100 * row[names[0]]:.0f} % ({row['problem']}, {row['active']:.0f} of {row['units']:.0f} units active)"
        for row in fits(frames)
    ]
    shares = [100 * row[names[0]] for row in sampled(frames) if row[names[0]] is not None]
    sampled_share = f"; the samplers' means explain {lab.span(shares, 0)} %" if shares else ""
    return (
        f"{_upper(condition)}: inside the data's range mean-field fits explain of the true function's variance "
        f"{', '.join(parts)}{sampled_share}."
    ) * bool(parts)


def chapters(
    config: SkipsConfig, outcomes: lab.Outcomes, frames: Frames
) -> Iterator[Chapter | None]:
    """Lay out the page."""
    hidden = config.hidden
    yield Chapter(
        "The question",
        "Hidden units can be swapped without any change to what a network computes. Kurle, Januschowski, Gasthaus and "
        "Wang (2021) argue that a Gaussian fitted to the posterior is drawn to where all copies coincide, the prior, "
        "so that it underfits, and that fixed semi-orthogonal skip matrices, which leave nothing to swap, fix it. "
        "They show one picture. Here are the numbers, for their network of "
        f"{len(hidden)} layers of {hidden[0]} SELU units on 128 points of a sinc function with noise 0.2, with chains "
        "of the same posteriors next to the fits.\n\n"
        "The paper does not state its prior's scale, its noise model, its function's scale or its optimiser. The "
        "optimiser here is Adam; the others are varied, and what fits turns on them: "
        f"{'; '.join(f'{c} ({lab.counted(c.datasets, "data set")})' for c in config.conditions)}.",
    )
    drawn = _figure_one(config, outcomes)
    yield Chapter("Figure 1, with numbers", "", (PREDICTIONS, DIFFERENCES), drawn)
    yield Chapter(
        "What the paper says, and what was measured",
        "Comparisons with a sampler leave out data sets on which its chains disagree on f.",
        (lab.STATEMENTS,),
    )
    yield Chapter(
        "What collapses",
        "A unit whose weights have gone back to the prior, or whose output nobody listens to, takes no part in the "
        "function.",
        (COLLAPSE, BY_LAYER),
    )
    yield Chapter(
        "The gap of equation 6",
        "The ELBO of the fit's symmetric mixture is higher than the fit's by this gap, which rewards fits whose copies "
        "coincide. It is bounded on both sides, layer by layer. Networks with skips or ordered biases have no "
        "permutations, and no gap.",
        (GAP_BY_LAYER, TRAINING),
        (_gap_figure(frames),) if frames["gaps"] else (),
    )
    yield Chapter(
        "What the samplers say of the same models",
        "What of this is the model's, and what the approximation's? NUTS and MCLMC know nothing of a mean field; they "
        f"run under the first condition: {config.conditions[0]}.",
        (CHAINS, FROM_TRUTH),
    )
    yield Chapter("Every comparison", views=(lab.EFFECTS,))
    yield lab.failed(frames)


EDGE = 2.0
"""Half the width of Figure 1; the data lie within 1."""


def _figure_one(config: SkipsConfig, outcomes: lab.Outcomes) -> tuple[lab.Extra, ...]:
    first = (config.seed, config.conditions[0])
    shown = outcomes.keep(lambda cell: (cell.seed, cell.case) == first)
    panels = [cell for cell in shown if cell.method in (VI, TRUTH)]
    if not panels:
        return ()
    data = dataset(config.seed, config.conditions[0].frequency)
    trees = {f"{c.problem}, {lab.METHOD_WORDS[c.method]}": outcomes.tree(c) for c in panels}
    figure = FigureItem(
        plot_uncertainty(trees, x=[[-EDGE], [EDGE]], truth=data.truth),
        caption="The paper's Figure 1 remade, first data set and condition: the predictive mean with one standard "
        "deviation, epistemic and in all, by mean-field fits (left) and by NUTS on the same models (right), over "
        "the data and the true function.",
        alt=f"Predictive bands over one input, for {', '.join(trees)}",
    )
    return (figure, *elbo_traces(shown))


def _gap_figure(frames: Frames) -> FigureItem:
    figure = style.new_figure(6.4, 3.0)
    axes = figure.subplots()
    gaps = frames["gaps"].where(layer=ALL)
    for place, condition in enumerate(gaps.levels("condition")):
        for number, data in enumerate(gaps.where(condition=condition).levels("data")):
            rows = gaps.where(data=data)
            step, low, high = (rows.column(name) for name in ("iteration", "lower", "upper"))
            colour = style.chain_colour(place)
            axes.fill_between(step, low, high, color=colour, alpha=0.3, linewidth=0)
            label = condition if number == 0 else None
            axes.plot(step, high, color=colour, linewidth=1.1, label=label)
    style.style_axes(axes, x_label="step of the training", y_label="gap of equation 6 (nats)")
    style.add_legend(figure, *axes.get_legend_handles_labels())
    return FigureItem(
        figure,
        caption="KL[q₀ ‖ q] between each fit and its symmetric mixture during the training: from its lower to its "
        "upper bound, a band a data set.",
        alt="Bounds of the gap of equation 6 against the steps of the training, one band for every fit",
    )


STUDY = lab.Study(
    design.configure, design.cells, design.target, measure, CLAIMS, VIEWS,
    f"Symmetry broken by {NAME.replace('-', ' ')}",
    headline, chapters, (*_DEFINITIONS, *DIAGNOSTICS, *PREDICTION),
    run_name=lambda c: c.label if c.method != GAP and c.number == 1 else None,
    shown=(PREDICTIONS, COLLAPSE, lab.VERDICTS),
    make=design.make,
)  # fmt: skip
