"""The study's figures."""

from __future__ import annotations

import numpy as np

from onebasin.analysis.figures.predictive_band import Curve, plot_predictive_band, predictive_band
from onebasin.analysis.figures.weight_scatter import WeightPair, plot_weight_scatter
from onebasin.analysis.posterior.view import read_draws
from onebasin.analysis.report import FigureItem
from onebasin.analysis.report.posterior_figures import elbo_figure, trace_figure

from ..heldout import draw_functions
from ..lab.study import ENGINE_WORDS, METHOD_WORDS, Cell
from .design import METHODS, Config, dataset, target
from .measures import Results

SHOWN = ("free", "givens")
_FAMILIES = {"meanfield": "mean-field", "fullrank": "full-rank"}
SLICE = np.linspace(-5.0, 5.0, 81)
"""Values of the first input along the slice; the second is 0."""
NEAR = 0.5
"""Training points with the second input within this of 0 are drawn beside the slice."""


def figure_one(results: Results) -> FigureItem | None:
    """Remake the paper's Figure 1, left: a weight into a unit against the weight out of it."""
    cells = _shown(results)
    if not cells:
        return None
    pairs = {
        name: WeightPair(
            read_draws(results.measured[cell].tree, "W1").of("W1[0,0]"),
            read_draws(results.measured[cell].tree, "W2").of("W2[0,0]"),
        )
        for name, cell in cells.items()
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


def slice_bands(config: Config, results: Results) -> FigureItem | None:
    """Draw what is known of the function along a line through input space."""
    cells = _shown(results)
    data = dataset(config.seed)
    if not cells or data.truth is None:
        return None
    x = np.column_stack([SLICE, np.zeros_like(SLICE)])
    bands = {}
    for name, cell in cells.items():
        function, _ = draw_functions(results.measured[cell].tree, target(config, cell).model, x)
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


def worst_trace(results: Results) -> tuple[str, FigureItem] | None:
    """Draw traces and ranks of the NUTS cell with the largest R-hat of a parameter, and name it."""
    sampled = results.sampled()
    known = {c: m for c, m in sampled.items() if np.isfinite(m.diagnosis.rhat.value)}
    if not known:
        return None
    worst = max(known, key=lambda cell: known[cell].diagnosis.rhat.value)
    item = trace_figure(known[worst].tree, known[worst].diagnosis)
    return None if item is None else (worst.label, item)


def elbo_traces(results: Results) -> tuple[FigureItem, ...]:
    """Draw the ELBO of every variational fit, one figure per engine."""
    items = []
    for engine in dict.fromkeys(cell.engine for cell in results.measured):
        fits = {
            f"{cell.problem}, {_FAMILIES[cell.method]}": found.tree
            for cell, found in results.measured.items()
            if cell.engine == engine and cell.method in _FAMILIES
        }
        item = elbo_figure(fits)
        if item is not None:
            caption = f"{ENGINE_WORDS[engine]}: {item.caption}"
            items.append(FigureItem(item.figure, caption, f"{item.alt}, {ENGINE_WORDS[engine]}"))
    return tuple(items)


def _shown(results: Results) -> dict[str, Cell]:
    """Give a cell for each panel, of the first engine that has it."""
    engines = dict.fromkeys(cell.engine for cell in results.measured)
    shown = {}
    for parametrisation in SHOWN:
        for method in METHODS:
            cells = (results.find(parametrisation, method, engine) for engine in engines)
            cell = next((c for c in cells if c is not None), None)
            if cell is not None:
                shown[f"{parametrisation}, {METHOD_WORDS[method]}"] = cell
    return shown
