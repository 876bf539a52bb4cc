"""Figures: the paper's Figure 1 for the first data set and condition, and the gap of equation 6 during training."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from onebasin.analysis.plots import style
from onebasin.analysis.plots.bands import plot_uncertainty

from ..lab.study import METHOD_WORDS, Frames, Outcomes, where
from .design import ALL, TRUTH, VI, SkipsConfig, dataset

EDGE = 2.0  # Half the width of Figure 1. The data lie within 1.


def draw_figures(config: SkipsConfig, outcomes: Outcomes, frames: Frames) -> Mapping[str, Figure]:
    """Draw predictive means with bands of one epistemic and one total sd, and the bounds of the gap for each fit."""
    first = (config.seed, config.conditions[0])
    shown = [c for c in outcomes if (c.seed, c.case) == first and c.method in (VI, TRUTH)]
    drawn = {"gap": _gap_figure(frames)} if len(frames["gaps"]) else {}
    if shown:
        data = dataset(config.seed, config.conditions[0].frequency)
        trees = {f"{c.problem}, {METHOD_WORDS[c.method]}": outcomes.tree(c) for c in shown}
        drawn["figure-1"] = plot_uncertainty(trees, x=[[-EDGE], [EDGE]], truth=data.truth)
    return drawn


def _gap_figure(frames: Frames) -> Figure:
    figure = style.new_figure(6.4, 3.0)
    axes = figure.subplots()
    gaps = where(frames["gaps"], layer=ALL)
    for place, condition in enumerate(gaps["condition"].unique()):
        for number, data in enumerate(where(gaps, condition=condition)["data"].unique()):
            rows = where(gaps, data=data)
            step, low, high = (rows[name].astype(float) for name in ("iteration", "lower", "upper"))
            colour = style.chain_colour(place)
            axes.fill_between(step, low, high, color=colour, alpha=0.3, linewidth=0)
            label = condition if number == 0 else None
            axes.plot(step, high, color=colour, linewidth=1.1, label=label)
    style.style_axes(axes, x_label="step of the training", y_label="gap of equation 6 (nats)")
    style.add_legend(figure, *axes.get_legend_handles_labels())
    return figure
