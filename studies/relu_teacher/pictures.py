"""The study's figures."""

from __future__ import annotations

import numpy as np

from onebasin.analysis.figures.predictive_band import Curve, plot_predictive_band, predictive_band
from onebasin.analysis.figures.weight_scatter import WeightPair, plot_weight_scatter
from onebasin.analysis.posterior.view import as_view
from onebasin.analysis.report import FigureItem
from onebasin.analysis.report.posterior_figures import elbo_figure, trace_figure

from ..heldout import draw_functions
from ..lab import ENGINE_WORDS, METHOD_WORDS, Cell, Frames, Outcomes, health
from ..lab.page import Extra
from .design import METHODS, Config, dataset, target
from .text import SAMPLING, VARIATIONAL, worst_cell

SHOWN = ("free", "givens")
_FAMILIES = {"meanfield": "mean-field", "fullrank": "full-rank"}
SLICE = np.linspace(-5.0, 5.0, 81)
"""Values of the first input along the slice; the second is 0."""
NEAR = 0.5
"""Training points with the second input within this of 0 are drawn beside the slice."""


def figures(config: Config, outcomes: Outcomes, frames: Frames) -> dict[str, tuple[Extra, ...]]:
    """Draw the figures, and tabulate the health of the chains."""
    found: dict[str, tuple[Extra, ...]] = {}
    sampled = [cell for cell in outcomes if cell.method == "nuts"]
    if sampled:
        trace = worst_trace(outcomes, frames)
        found[SAMPLING] = (*health(outcomes, sampled), figure_one(outcomes), trace)
    if frames["cells"].known("from_nuts_in_sds"):
        found[VARIATIONAL] = (slice_bands(config, outcomes), *elbo_traces(outcomes))
    return found


def figure_one(outcomes: Outcomes) -> FigureItem | None:
    """Remake the paper's Figure 1, left: a weight into a unit against the weight out of it."""
    cells = _shown(outcomes)
    if not cells:
        return None
    pairs = {
        name: WeightPair(
            *(as_view(tree).draws(weights).of(f"{weights}[0,0]") for weights in ("W1", "W2"))
        )
        for name, tree in ((name, outcomes.tree(cell)) for name, cell in cells.items())
    }
    return FigureItem(
        plot_weight_scatter(pairs, columns=len(METHODS)),
        caption="The paper's Figure 1 (left) remade: draws of `W1[0,0]` against `W2[0,0]` (W₁[1,1] "
        "and W₂[1] where one counts from 1). Scaling a unit up and its output down changes "
        "nothing, which draws free weights (above) out along hyperbolas as far as the priors let "
        "them; unit-norm weights (below) stay within ±1. NUTS goes to every mode, such as the two "
        "ways to number the units, and an approximation to one.",
        alt="Scatter of W1[0,0] against W2[0,0] by NUTS, mean-field and full-rank ADVI, for free "
        "and for unit-norm weights",
    )


def slice_bands(config: Config, outcomes: Outcomes) -> FigureItem | None:
    """Draw what is known of the function along a line through input space."""
    cells = _shown(outcomes)
    data = dataset(config.seed)
    if not cells or data.truth is None:
        return None
    x = np.column_stack([SLICE, np.zeros_like(SLICE)])
    bands = {}
    for name, cell in cells.items():
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
        caption="The function f along x1, with x2 = 0: its posterior mean with 50 % and 95 % bands, "
        "without observation noise, and the true function. The points are training data with x2 "
        f"within {NEAR:g} of 0, so they need not lie on the curve.",
        alt="Bands of the function along the first input by NUTS, mean-field and full-rank ADVI, "
        "for free and for unit-norm weights",
    )


def worst_trace(outcomes: Outcomes, frames: Frames) -> FigureItem | None:
    """Draw traces and ranks of the cell with the largest R-hat of a parameter."""
    worst = worst_cell(frames)
    if worst is None:
        return None
    (cell,) = (cell for cell in outcomes if cell.key == worst["key"])
    return trace_figure(outcomes.tree(cell), outcomes.diagnosis(cell))


def elbo_traces(outcomes: Outcomes) -> tuple[FigureItem, ...]:
    """Draw the ELBO of every variational fit, one figure per engine."""
    items = []
    for engine in dict.fromkeys(cell.engine for cell in outcomes):
        fits = {
            f"{cell.problem}, {_FAMILIES[cell.method]}": outcomes.tree(cell)
            for cell in outcomes
            if cell.engine == engine and cell.method in _FAMILIES
        }
        item = elbo_figure(fits)
        if item is not None:
            caption = f"{ENGINE_WORDS[engine]}: {item.caption}"
            items.append(FigureItem(item.figure, caption, f"{item.alt}, {ENGINE_WORDS[engine]}"))
    return tuple(items)


def _shown(outcomes: Outcomes) -> dict[str, Cell]:
    """Give a cell for each panel, of the first engine that has it."""
    panels = [(problem, method) for problem in SHOWN for method in METHODS]
    shown: dict[tuple[str, str], Cell] = {}
    for engine in dict.fromkeys(cell.engine for cell in outcomes):
        for cell in outcomes:
            if cell.engine == engine:
                shown.setdefault((cell.problem, cell.method), cell)
    return {
        f"{problem}, {METHOD_WORDS[method]}": shown[problem, method]
        for problem, method in panels
        if (problem, method) in shown
    }
