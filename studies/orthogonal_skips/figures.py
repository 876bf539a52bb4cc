"""The figures: the paper's Figure 1 remade, the ELBO, and the gap over the training."""

from collections.abc import Mapping

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots import style
from onebasin.analysis.plots.uncertainty import plot_uncertainty

from ..lab import METHOD_WORDS, Cell, Frames, Outcomes
from ..lab.figures import elbo_traces
from ..lab.page import Extra
from .design import TRUTH, VI, Config, dataset
from .making import ALL
from .text import EQUATION_SIX, FIGURE_ONE

EDGE = 2.0
"""Half the width of Figure 1; the data lie within 1."""


def figures(config: Config, outcomes: Outcomes, frames: Frames) -> Mapping[str, tuple[Extra, ...]]:
    """Draw the posteriors of the first data set under the first condition, and the gap of all."""
    extras: dict[str, tuple[Extra, ...]] = {}
    shown = outcomes.keep(
        lambda cell: (
            (cell.seed, getattr(cell, "condition", None)) == (config.seed, config.conditions[0])
        )
    )
    panels = [cell for cell in shown if cell.method in (VI, TRUTH)]
    if panels:
        extras[FIGURE_ONE] = (_figure_one(config, shown, panels), *elbo_traces(shown))
    if frames["gaps"]:
        extras[EQUATION_SIX] = (_gap_figure(frames),)
    return extras


def _figure_one(config: Config, outcomes: Outcomes, panels: list[Cell]) -> FigureItem:
    """Remake the paper's Figure 1, fits beside chains."""
    first = config.conditions[0]
    data = dataset(panels[0].seed, first.frequency)
    trees = {f"{cell.problem}, {METHOD_WORDS[cell.method]}": outcomes.tree(cell) for cell in panels}
    return FigureItem(
        plot_uncertainty(trees, x=[[-EDGE], [EDGE]], truth=data.truth),
        caption="The paper's Figure 1 remade, first data set and condition: the predictive mean with one standard "
        "deviation, epistemic and in all, by mean-field fits (left) and by NUTS on the same models (right), over the "
        "data and the true function.",
        alt=f"Predictive bands over one input, for {', '.join(trees)}",
    )


def _gap_figure(frames: Frames) -> FigureItem:
    """Draw both bounds of the gap against the steps of the training, a line a fit."""
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
