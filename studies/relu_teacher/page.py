"""What the study says in tables, words and pictures."""

from collections.abc import Iterable

import numpy as np

from onebasin.analysis.figures.predictive_band import Curve, plot_predictive_band, predictive_band
from onebasin.analysis.figures.weight_scatter import WeightPair, plot_weight_scatter
from onebasin.analysis.posterior.view import as_view
from onebasin.analysis.predictive.heldout import draw_functions
from onebasin.analysis.report import FigureItem
from onebasin.analysis.report.definitions import DIAGNOSTICS, PREDICTION
from onebasin.models.data import own_split

from .. import against_nuts, lab
from ..heldout import OF_F, PREDICTIVE
from ..lab import Chapter, Field, Frames
from ..lab.figures import elbo_traces, panels, worst_chains, worst_trace
from ..lab.page import Extra
from ..pourzanjani import DEFINITION
from .design import CHARTS, METHODS, SEAM, Config, dataset, target

SLICE = np.linspace(-5.0, 5.0, 81)
"""Values of the first input along the slice; the second is 0."""
NEAR = 0.5
"""Training points with the second input within this of 0 are drawn beside the slice."""
_SAMPLING = "Is the constrained posterior easier to sample?"
_VARIATIONAL = "Can ADVI stand in for NUTS?"


charts = lab.select("cells", problem=CHARTS, method="nuts")
SAMPLING = lab.View(
    "NUTS: parameters, which swapped units spoil, and predictions f, which they do not",
    (
        Field("posterior", lab.where),
        Field("R-hat", "rhat_value", decimals=3, unit="worst parameter"),
        Field("bulk ESS", "ess_bulk_value", decimals=0, unit="worst parameter"),
        *OF_F,
    ),
    over=lab.select("cells", method="nuts"),
)
ALONG_THE_SEAM = lab.View(
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
SCORES = lab.View(
    "Predictions at the held-out points",
    (
        Field("posterior", "label"),
        *PREDICTIVE,
        Field("bias", "bias", decimals=3, unit="of the true function"),
        Field("error", "error", decimals=3, unit="rms, true function"),
    ),
)
TABLES = (against_nuts.ENGINES_AGREE, SAMPLING, ALONG_THE_SEAM, against_nuts.FROM_NUTS, SCORES)


def headline(frames: Frames) -> tuple[str, ...]:
    """Say the result in three sentences."""
    return against_nuts.engines_agree(frames), lab.count_verdicts(frames), _approximation(frames)


def _approximation(frames: Frames) -> str:
    parts = []
    for name in ("free", "givens"):
        fits = against_nuts.advi(problem=name)(frames)
        if fits:
            shift, ratio = (lab.span(fits.column(f"from_nuts_{n}")) for n in ("in_sds", "sd_ratio"))
            parts.append(
                f"{shift} posterior sds off with {name} weights (their sd of f is {ratio} times NUTS's)"
            )
    return f"Held against NUTS, ADVI's predictive means are {', and '.join(parts)}." * bool(parts)


def chapters(config: Config, frames: Frames) -> Iterable[Chapter | None]:
    """Write the chapters of the page."""
    yield question(config)
    yield against_nuts.VERDICTS_CHAPTER
    yield against_nuts.AGREEMENT_CHAPTER
    worst = worst_chains(frames["cells"])
    traced = (
        f" The traces at the end are those of the worst cell, {worst['label']}." if worst else ""
    )
    yield Chapter(
        _SAMPLING,
        "R-hat and ESS of single parameters condemn chains that number the units differently, although their "
        f"predictions agree; so both are shown.{traced}",
        (SAMPLING,),
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
    yield Chapter(
        _VARIATIONAL,
        "Whether an approximation is biased shows against NUTS on the very same posterior.",
        (against_nuts.FROM_NUTS,),
    )
    yield Chapter("Held-out predictions", views=(SCORES,))
    yield Chapter("Every comparison", views=(lab.TRIALS,))
    yield lab.failed(
        frames, "These variational fits failed in every attempt; they are missing above."
    )


def question(config: Config) -> Chapter:
    """Say what the study asks, and of which data."""
    data = dataset(config.seed)
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


_TERMS = (DEFINITION, *against_nuts.DEFINITIONS, *DIAGNOSTICS, *PREDICTION)
TEXT = lab.Text("Two ReLU units, free and constrained", headline, chapters, _TERMS)


def figures(config: Config, outcomes: lab.Outcomes, frames: Frames) -> dict[str, tuple[Extra, ...]]:
    """Draw the figures, and tabulate the health of the chains."""
    extras: dict[str, tuple[Extra, ...]] = {}
    sampled = [cell for cell in outcomes if cell.method == "nuts"]
    shown = panels(outcomes, ("free", "givens"), METHODS)
    if sampled:
        trace = worst_trace(outcomes, frames["cells"])
        extras[_SAMPLING] = (*lab.health(outcomes, sampled), _figure_one(outcomes, shown), trace)
    if against_nuts.advi()(frames):
        extras[_VARIATIONAL] = (_slice(config, outcomes, shown), *elbo_traces(outcomes))
    return extras


def _figure_one(outcomes: lab.Outcomes, shown: dict[str, lab.Cell]) -> FigureItem | None:
    """Remake the paper's Figure 1, left: a weight into a unit against the weight out of it."""
    if not shown:
        return None
    draws = {name: as_view(outcomes.tree(cell)).draws for name, cell in shown.items()}
    pairs = {
        name: WeightPair(*(of(w).of(f"{w}[0,0]") for w in ("W1", "W2")))
        for name, of in draws.items()
    }
    return FigureItem(
        plot_weight_scatter(pairs, columns=len(METHODS)),
        caption="The paper's Figure 1 (left) remade: draws of `W1[0,0]` against `W2[0,0]` (W₁[1,1] and W₂[1] where "
        "one counts from 1). Scaling a unit up and its output down changes nothing, which draws free weights (above) "
        "out along hyperbolas as far as the priors let them; unit-norm weights (below) stay within ±1. NUTS goes to "
        "every mode, such as the two ways to number the units, and an approximation to one.",
        alt="Scatter of W1[0,0] against W2[0,0] by NUTS, mean-field and full-rank ADVI, for free and for unit-norm "
        "weights",
    )


def _slice(config: Config, outcomes: lab.Outcomes, shown: dict[str, lab.Cell]) -> FigureItem | None:
    """Draw what is known of the function along a line through input space."""
    data, x = dataset(config.seed), np.column_stack([SLICE, np.zeros_like(SLICE)])
    if not shown or data.truth is None:
        return None
    assert data.truth is not None, "the teacher's data know it"
    bands = {}
    for name, cell in shown.items():
        function, _ = draw_functions(outcomes.tree(cell), target(config, cell).model, x)
        bands[name] = predictive_band(SLICE, function[..., 0])
    near = (np.abs(data.x[:, 1]) < NEAR) & (np.abs(data.x[:, 0]) <= SLICE[-1])
    return FigureItem(
        plot_predictive_band(
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
