"""The paper's Figure 1: draws of one unit's weights, and bands of the function along the first input."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from onebasin.analysis.plots.bands import Curve, draw_predictive_bands, predictive_band
from onebasin.analysis.plots.chains import Pair, draw_pairs
from onebasin.posteriors.view import as_view
from onebasin.truth.problems.networks import teacher_data

from ..lab.study import METHOD_WORDS, Frames, Outcomes
from ..networks.held_out import draw_functions
from .design import METHODS, TeacherConfig, target

SLICE = np.linspace(-5.0, 5.0, 81)
"""Values of the first input along the slice; the second input is 0."""
NEAR = 0.5  # Largest absolute second input of the training points that are drawn with the slice.


def draw_figures(config: TeacherConfig, outcomes: Outcomes, frames: Frames) -> Mapping[str, Figure]:
    """Draw the posteriors of the first data set, free above and unit-norm below, from the first available engine."""
    shown = {
        f"{problem}, {METHOD_WORDS[method]}": cell
        for problem in ("free", "givens")
        for method in METHODS
        for cell in reversed([*outcomes])
        if (cell.problem, cell.method, cell.number) == (problem, method, 1)
    }
    if not shown:
        return {}
    data, x = teacher_data(config.seed), np.column_stack([SLICE, np.zeros_like(SLICE)])
    pairs, bands = {}, {}
    for name, cell in shown.items():
        tree = outcomes.tree(cell)
        draws = as_view(tree).draws
        pairs[name] = Pair(*(draws(w).of(f"{w}[0,0]") for w in ("W1", "W2")))
        function, _ = draw_functions(tree, target(config, cell).model, x)
        bands[name] = predictive_band(SLICE, function[..., 0])
    assert data.truth is not None, "the teacher's data have a true function"
    near = (np.abs(data.x[:, 1]) < NEAR) & (np.abs(data.x[:, 0]) <= SLICE[-1])
    return {
        "figure-1": draw_pairs(pairs, columns=len(METHODS)),
        "slice": draw_predictive_bands(
            bands,
            data=Curve(data.x[near, 0], np.asarray(data.y, np.float64)[near, 0]),
            truth=Curve(SLICE, data.truth(x)[:, 0]),
            x_label="x1 (x2 = 0)",
            columns=len(METHODS),
        ),
    }
