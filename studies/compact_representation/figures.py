"""The paper's Figures 2 and 3, for trained pairs of networks.

Figure 2 shows the mean loss on the training images for two networks trained from different initial weights and batches.
It also shows the loss of the network halfway between them, before and after alignment of the second network to the
first. Figure 3 shows pairs from the same initial weights, permuted for the second network. Each network sees its
batches in a different order. Bands are one standard deviation over runs. The panel at the bottom right has one line per
run: the transpositions that align a network on the line from the first network to its most permuted twin.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onebasin.analysis.plots import style

from ..lab.study import Frames, Outcomes
from .design import CompactConfig

PANEL = (3.1, 2.5)  # Width and height of a panel, in inches.
_AS_TRAINED, _ALIGNED = style.chain_colour(1), style.ACCENT


def draw_figures(config: CompactConfig, outcomes: Outcomes, frames: Frames) -> Mapping[str, Figure]:
    """Draw the figures of the pairs that succeeded."""
    drawn = {"figure-2": ("dynamics", figure_two), "figure-3": ("swaps", figure_three)}
    return {
        name: draw(tree[kind].to_dataset())
        for name, (kind, draw) in drawn.items()
        if (tree := outcomes.find("pair", kind)) is not None
    }


def figure_two(found: xr.Dataset) -> Figure:
    """Draw Figure 2: losses of two networks and of the network halfway between them during training."""
    titles = ("as trained", "second aligned to the first")
    figure = style.new_figure(2 * PANEL[0] + 0.3, PANEL[1] + 0.5)
    panels = figure.subplots(1, 2)
    middle = found.sizes["position"] // 2
    for axes, name, title in zip(panels, ("loss_raw", "loss_aligned"), titles, strict=True):
        style.style_axes(axes, title=title, x_label="epoch", y_label="loss (nats)")
        losses = found[name].values
        axes.plot(found["epoch"], losses[:, 0], "-", color=style.INK, label="first network")
        axes.plot(found["epoch"], losses[:, -1], "--", color=style.MUTED, label="second network")
        axes.plot(
            found["epoch"], losses[:, middle], "-", color=style.ACCENT, label="halfway between"
        )
        axes.set_ylim(bottom=0)
    style.add_legend(figure, *panels[0].get_legend_handles_labels())
    return figure


def figure_three(found: xr.Dataset) -> Figure:
    """Draw Figure 3: transpositions before and after training."""
    figure = style.new_figure(2 * PANEL[0] + 0.3, 2 * PANEL[1] + 0.6)
    panels = figure.subplots(2, 2).ravel()
    before = "transpositions before training"
    words = (
        ("transpositions after", before, "transpositions (NoT)"),
        ("distance", before, "Euclidean"),
        ("loss barrier", before, "nats"),
        ("along the line", "position on the line", "transpositions (NoT)"),
    )
    for axes, (title, x_label, y_label) in zip(panels, words, strict=True):
        style.style_axes(axes, title=title, x_label=x_label, y_label=y_label)
    counts = found["before"].values
    panels[0].plot(counts, counts, ":", color=style.MUTED, label="as before training")
    _band(panels[0], counts, found["after"].values, style.INK, "mean over runs, ±1 sd")
    for axes, name in ((panels[1], "distance"), (panels[2], "barrier")):
        _band(axes, counts, found[f"{name}_raw"].values, _AS_TRAINED, "as trained")
        _band(axes, counts, found[f"{name}_aligned"].values, _ALIGNED, "aligned")
    for along in found["between"].values:
        panels[3].plot(found["position"], along, color=style.MUTED, linewidth=0.9, alpha=0.8)
    for axes in panels[:2]:
        axes.legend(frameon=False, fontsize=style.TEXT_SIZE - 1, labelcolor=style.INK)
    return figure


def _band(axes: Axes, x: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    mean, sd = values.mean(axis=0), values.std(axis=0)
    axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, mean, "o-", color=colour, markersize=3, label=label)
