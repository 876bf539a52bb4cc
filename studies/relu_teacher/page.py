"""The study's page: tables, words and pictures."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots.bands import Curve, draw_predictive_bands, predictive_band
from onebasin.analysis.plots.pair import Pair, draw_pairs
from onebasin.analysis.predictive.heldout import draw_functions
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.models.data import own_split
from onebasin.posteriors.view import as_view
from onebasin.truth.problems.relu_networks import DEFINITION, teacher_data

from .. import lab
from ..lab import EFFECTS, MIN_PAIRS, Chapter, Extra, Field, Frames, RowTable, at_most
from ..lab.figures import elbo_traces, panels, worst_chains, worst_trace
from ..lab.shared import (
    MAX_RHAT,
    OF_F,
    PREDICTIVE,
    RHAT,
    averaged,
    chains_that_disagree,
    mixing,
    posterior_name,
)
from . import design
from .design import CHARTS, FULL_DATASETS, METHODS, SEAM, TeacherConfig, target
from .measures import BOUND, CLAIMS, SHIFT, advi, measure

SLICE = np.linspace(-5.0, 5.0, 81)
"""Values of the first input along the slice; the second is 0."""
NEAR = 0.5
"""Training points with the second input within this of 0 are drawn next to the slice."""


def several(frames: Frames) -> bool:
    """Tell whether there are several data sets."""
    cells = frames["cells"]
    return any(row.get("data") for row in cells)


def of_one(rows: Callable[[Frames], lab.Frame]) -> Callable[[Frames], lab.Frame]:
    """Take rows where there is one data set; a table of all posteriors of many would fill a book."""
    return lambda frames: lab.Frame() if several(frames) else rows(frames)


def of_many(rows: Callable[[Frames], lab.Frame]) -> Callable[[Frames], lab.Frame]:
    """Take rows where there are several data sets, to average over them."""
    return lambda frames: rows(frames) if several(frames) else lab.Frame()


_COMMON = ("problem", "method", "engine", "noise_sd")
_SIZE = (
    Field("posterior", posterior_name),
    Field("noise", "noise_sd"),
    Field("data sets", "datasets"),
)
MIXING = mixing(
    ("problem", "engine", "noise_sd"),
    "NUTS: how far the chains have got, over all data sets (parametrisation, engine, noise)",
)
AGREEMENT = averaged(
    "NUTS in Stan against NUTS in NumPyro over all data sets: the largest difference of any predictive mean",
    of_many(lab.select("engines")),
    ("problem",),
    (
        Field("parametrisation", "problem"),
        Field("data sets", "datasets"),
        Field("largest difference", "max_largest", decimals=2, unit="MCSE"),
        Field("beyond", "max_beyond", unit=f"{BOUND:g} MCSE, worst data set", flag=at_most(0)),
        Field("R-hat", "max_rhat", decimals=3, unit="largest"),
    ),
)
FITS_OVER_DATA = averaged(
    "ADVI against NUTS with the same parametrisation, means over data sets",
    of_many(advi()),
    _COMMON,
    (
        *_SIZE,
        Field("shift of the mean", "from_nuts_in_sds", decimals=2, unit="posterior sds, rms"),
        Field("by chance", "from_nuts_floor_in_sds", decimals=2, unit="posterior sds, rms"),
        Field("sd of f", "from_nuts_sd_ratio", decimals=2, unit="ratio to NUTS"),
        Field("k-hat", "khat", decimals=2),
    ),
)
SCORES_OVER_DATA = averaged(
    "Predictions at the held-out points, means over data sets",
    of_many(lab.select("cells")),
    _COMMON,
    (
        *_SIZE,
        Field("RMSE", "rmse", unit="of the data"),
        Field("log score", "log_score", decimals=3, unit="nats"),
        Field("coverage", "coverage_50", decimals=3, unit="50 % interval"),
        Field("coverage", "coverage_95", decimals=3, unit="95 % interval"),
        Field("error", "error", decimals=3, unit="rms, true function"),
    ),
)
OVER_DATA_SETS = (MIXING, AGREEMENT, FITS_OVER_DATA, SCORES_OVER_DATA)


charts = of_one(lab.select("cells", problem=CHARTS, method="nuts"))
SAMPLING = RowTable(
    "NUTS: parameters, which swapped units spoil, and predictions f, which they do not",
    (
        Field("posterior", lab.where),
        Field("R-hat", "rhat_value", decimals=3, unit="worst parameter"),
        Field("bulk ESS", "ess_bulk_value", decimals=0, unit="worst parameter"),
        *OF_F,
    ),
    over=of_one(lab.select("cells", method="nuts")),
)
ALONG_THE_SEAM = RowTable(
    f"One posterior in three charts. At the seam: a unit's longitude within {SEAM:g} of ±π. Crossings: a unit lies "
    "on one side of the seam and at the next draw on the other",
    (
        Field("chart", lab.where),
        Field("at the seam", "at_seam", decimals=3, unit="share of draws"),
        Field("crossings", "crossings", decimals=1, unit="per 1000 draws"),
        *OF_F,
    ),
    over=charts,
)
SCORES = RowTable(
    "Predictions at the held-out points",
    (
        Field("posterior", "label"),
        *PREDICTIVE,
        Field("bias", "bias", decimals=3, unit="of the true function"),
        Field("error", "error", decimals=3, unit="rms, true function"),
    ),
    over=of_one(lab.select("cells")),
)
ENGINES_AGREE = RowTable(
    "NUTS in Stan against NUTS in NumPyro: means of f at the held-out points and of `sigma`, none of which notices "
    "swapped or rescaled units",
    (
        Field("parametrisation", "problem"),
        Field("compared", "num_quantities", unit="means"),
        Field(
            "largest difference",
            "largest",
            decimals=2,
            unit="MCSE",
            flag=at_most(BOUND),
            note=lambda row: f"at `{row['where']}`",
        ),
        Field("beyond", "beyond", unit=f"{BOUND:g} MCSE", flag=at_most(0)),
        Field("R-hat", "rhat", 3, 3, "largest", flag=at_most(RHAT, otherwise="warn")),
    ),
    over=of_one(lab.select("engines")),
)
_SDS, _TO_NUTS = "posterior sds, rms", "ratio to NUTS"
FROM_NUTS = RowTable(
    "ADVI against NUTS with the same parametrisation, held-out points",
    (
        Field("posterior", "label"),
        Field(
            "shift of the mean", "from_nuts_in_sds", 3, 2, _SDS, at_most(SHIFT, otherwise="warn")
        ),
        Field("by chance", "from_nuts_floor_in_sds", decimals=2, unit=_SDS),
        Field("shift", "from_nuts_rms", decimals=3, unit="units of y, rms"),
        Field("sd of f", "from_nuts_sd_ratio", decimals=2, unit=_TO_NUTS),
        Field("predictive sd", "from_nuts_predictive_sd_ratio", decimals=2, unit=_TO_NUTS),
        Field("k-hat", "khat", decimals=2),
        Field("ELBO", "elbo", decimals=1, unit="nats, last"),
        Field("converged", "converged"),
    ),
    over=of_one(advi()),
)
VIEWS = (
    lab.STATEMENTS,
    EFFECTS,
    *OVER_DATA_SETS,
    ENGINES_AGREE,
    SAMPLING,
    ALONG_THE_SEAM,
    FROM_NUTS,
    SCORES,
    lab.FAILURES,
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cells = frames["cells"]
    if several(frames):
        noises = " and ".join(f"{noise:g}" for noise in cells.levels("noise_sd"))
        yield (
            f"Statements are tried on {len(cells.levels('dataset'))} data sets ({FULL_DATASETS} with --full) with "
            f"noise {noises}, {len(cells)} posteriors in all."
        )
    else:
        yield "This is one data set, on which no statement can be decided: --full tries them on many."
    yield chains_that_disagree(frames)
    yield engines_agree(frames["engines"])
    yield lab.count_verdicts(frames)
    if not several(frames):
        parts = []
        for name in ("free", "givens"):
            fits = advi(problem=name)(frames)
            if fits:
                shift, ratio = (
                    lab.span(fits.column(f"from_nuts_{n}")) for n in ("in_sds", "sd_ratio")
                )
                parts.append(
                    f"{shift} posterior sds off with {name} weights (their sd of f is {ratio} times NUTS's)"
                )
        yield (
            f"Held against NUTS, ADVI's predictive means are {', and '.join(parts)}." * bool(parts)
        )
        return
    answers = [row["holds"] for row in frames["trials"]]
    holds, not_, undecided, void = (answers.count(word) for word in (True, False, "open", None))
    yield (
        f"Of the {len(answers)} comparisons behind them {holds} speak for and {not_} against a statement, {undecided} "
        f"are open, and {void} cannot be judged: fewer than {MIN_PAIRS} data sets are left on which chains agree."
    )


def engines_agree(engines: lab.Frame) -> str:
    """Say in a sentence whether the engines' NUTS agree; nothing where one engine ran."""
    if not engines:
        return ""
    differ = [row for row in engines if row["beyond"]]
    largest = max(engines.column("largest"))
    what = "posteriors" if engines.rows[0].get("data") else "parametrisations"
    if not differ:
        return (
            f"NUTS in Stan and in NumPyro agree in every predictive mean of all {len(engines)} {what}, to within "
            f"{largest:.1f} Monte Carlo errors."
        )
    apart = sum(row["rhat"] > MAX_RHAT for row in differ)
    return (
        f"NUTS in Stan and in NumPyro differ by more than {BOUND:g} Monte Carlo errors in {len(differ)} of "
        f"{len(engines)} {what} ({', '.join(dict.fromkeys(row['problem'] for row in differ))}; at most {largest:.1f})"
        + (f", in {apart} of which chains of either disagree." if apart else ".")
    )


def chapters(
    config: TeacherConfig, outcomes: lab.Outcomes, frames: Frames
) -> Iterable[Chapter | None]:
    """Write the chapters of the page; figures are of the first data set."""
    first = next((cell.data for cell in outcomes), None)
    outcomes = outcomes.keep(lambda cell: cell.data == first)
    shown = panels(outcomes, ("free", "givens"), METHODS)
    yield question(config)
    yield Chapter(
        "What the paper says, and what was measured",
        "Every statement is tried in several comparisons, which are listed at the end. A data set is left out where "
        f"the chains of NUTS disagree on f (R-hat above {MAX_RHAT:g} at a held-out point): then NUTS itself is not the "
        "truth.",
        (lab.STATEMENTS,),
    )
    yield Chapter(
        "Do the engines agree?",
        "The same model was written twice. If both are right and both samplers have found the posterior, their "
        "predictive means differ by Monte Carlo error alone.",
        (ENGINES_AGREE,),
    )
    worst = worst_chains(frames["cells"])
    traced = (
        f" The traces at the end are those of the worst cell, {worst['label']}." if worst else ""
    )
    yield Chapter(
        "Is the constrained posterior easier to sample?",
        "R-hat and ESS of single parameters condemn chains that number the units differently, although their "
        f"predictions agree; so both are shown.{traced}",
        (*OVER_DATA_SETS, SAMPLING),
        _of_chains(outcomes, frames, shown),
    )
    if len(charts(frames).levels("problem")) > 1:
        yield Chapter(
            "The seam of the Givens angle",
            "In two dimensions the Givens transform writes a unit vector as an angle between −π and π. Vectors on "
            "either side of ±π are neighbours on the circle and infinitely far apart for the sampler, so a posterior "
            "that reaches the seam falls into two modes, and a chain that starts on the wrong side presses against "
            "it, or has to go all the way round. `givens_seamless` and `unit_vector` describe the same posterior "
            "without a seam: their chains step across it.",
            (ALONG_THE_SEAM,),
        )
    fits = advi()(frames) and not several(frames)
    yield Chapter(
        "Can ADVI stand in for NUTS?",
        "Whether an approximation is biased shows against NUTS on the very same posterior.",
        (FROM_NUTS,),
        (_slice(config, outcomes, shown), *elbo_traces(outcomes)) if fits else (),
    )
    yield Chapter("Held-out predictions", views=(SCORES,))
    yield Chapter("Every comparison", views=(EFFECTS,))
    yield lab.failed(
        frames, "These variational fits failed in every attempt; they are missing above."
    )


def question(config: TeacherConfig) -> Chapter:
    """Say what the study asks, and of which data."""
    data = teacher_data(config.seed)
    parts = own_split(data)
    return Chapter(
        "The question",
        "A network's hidden units can be swapped, and with ReLU each can be scaled up and its output down, without "
        "any change to what the network computes. Pourzanjani, Jiang and Petzold (2017) take both freedoms away by "
        "constraints: biases in order, incoming weights of norm 1. Section 4.1 of their paper says what that does "
        "to sampling and to variational inference.\n\nHere the experiment is repeated on data from their teacher "
        f"network ({data.source}; {parts.train.num_obs} training and {parts.test.num_obs} held-out points), with "
        "N(0, 1) priors and a half-normal one on the noise, in Stan and in NumPyro. Where the paper does not say "
        "how it was done, the choices are ours.",
    )


_DEFINITIONS = (
    (
        "f, prediction",
        "f is the network's output without noise; a prediction adds noise of the draw's own `sigma`. Means and "
        "errors are those of f.",
    ),
    (
        "Shift of the mean, sd of f",
        "Difference of the posterior means of f between ADVI and NUTS at each held-out point, over NUTS's posterior "
        "sd there, root mean square over the points; and the geometric mean of the ratio of the sds. `By chance` is "
        "the shift that Monte Carlo error alone would give.",
    ),
)


def _of_chains(
    outcomes: lab.Outcomes, frames: Frames, shown: dict[str, lab.Cell]
) -> tuple[Extra, ...]:
    sampled = [cell for cell in outcomes if cell.method == "nuts"]
    if not sampled:
        return ()
    cells = frames["cells"].where(key=tuple(cell.key for cell in outcomes))
    trace = worst_trace(outcomes, cells)
    return (*lab.health(outcomes, sampled), _figure_one(outcomes, shown), trace)


def _figure_one(outcomes: lab.Outcomes, shown: dict[str, lab.Cell]) -> FigureItem | None:
    if not shown:
        return None
    draws = {name: as_view(outcomes.tree(cell)).draws for name, cell in shown.items()}
    pairs = {
        name: Pair(*(of(w).of(f"{w}[0,0]") for w in ("W1", "W2"))) for name, of in draws.items()
    }
    return FigureItem(
        draw_pairs(pairs, columns=len(METHODS)),
        caption="The paper's Figure 1 (left) remade: draws of `W1[0,0]` against `W2[0,0]` (W₁[1,1] and W₂[1] where "
        "one counts from 1). Scaling a unit up and its output down changes nothing, which draws free weights (above) "
        "out along hyperbolas as far as the priors let them; unit-norm weights (below) stay within ±1. NUTS goes to "
        "every mode, such as the two ways to number the units, and an approximation to one.",
        alt="Scatter of W1[0,0] against W2[0,0] by NUTS, mean-field and full-rank ADVI, for free and for unit-norm "
        "weights",
    )


def _slice(
    config: TeacherConfig, outcomes: lab.Outcomes, shown: dict[str, lab.Cell]
) -> FigureItem | None:
    data, x = teacher_data(config.seed), np.column_stack([SLICE, np.zeros_like(SLICE)])
    if not shown or data.truth is None:
        return None
    bands = {}
    for name, cell in shown.items():
        function, _ = draw_functions(outcomes.tree(cell), target(config, cell).model, x)
        bands[name] = predictive_band(SLICE, function[..., 0])
    near = (np.abs(data.x[:, 1]) < NEAR) & (np.abs(data.x[:, 0]) <= SLICE[-1])
    return FigureItem(
        draw_predictive_bands(
            bands,
            data=Curve(data.x[near, 0], np.asarray(data.y, np.float64)[near, 0]),
            truth=Curve(SLICE, data.truth(x)[:, 0]),
            x_label="x1 (x2 = 0)",
            columns=len(METHODS),
        ),
        caption="The function f along x1, with x2 = 0: its posterior mean with 50 % and 95 % bands, without "
        f"observation noise, and the true function. The points are training data with x2 within {NEAR:g} of 0, so "
        "they need not lie on the curve.",
        alt="Bands of the function along the first input by NUTS, mean-field and full-rank ADVI, for free and for "
        "unit-norm weights",
    )


STUDY = lab.Study(
    design.configure, design.cells, design.target, measure, CLAIMS, VIEWS,
    "Two ReLU units, free and constrained",
    headline, chapters, (DEFINITION, *_DEFINITIONS, *DIAGNOSTICS, *PREDICTION),
    run_name=lambda cell: cell.label if cell.number == 1 else None,
    shown=(MIXING, ENGINES_AGREE, lab.VERDICTS),
)  # fmt: skip
