"""The study's figures: the paper's Figures 2, 3 and 5, and all representations at a glance."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onebasin.analysis.figures.style import (
    ACCENT,
    INK,
    MUTED,
    TEXT_SIZE,
    add_legend,
    chain_colour,
    new_figure,
    new_panels,
    style_axes,
)
from onebasin.analysis.report import FigureItem

from .measures import Measured, Results

_PANEL, _MARGIN = (3.1, 2.5), (0.3, 0.5)
_AS_TRAINED, _ALIGNED = chain_colour(1), ACCENT


def figure_two(results: Results) -> FigureItem | None:
    """Remake Figure 2: losses of two networks and of those between them, as training goes on."""
    if "dynamics" not in results.trees:
        return None
    found = results.trees["dynamics"]["dynamics"].to_dataset()
    titles = {"loss_raw": "as trained", "loss_aligned": "second aligned to the first"}
    figure, panels = new_panels(
        list(titles.values()),
        columns=2,
        panel_size=_PANEL,
        margin=_MARGIN,
        x_label="epoch",
        y_label="loss (nats)",
    )
    middle = found.sizes["position"] // 2
    lines = {
        "first network": (0, INK, "-"),
        "second network": (-1, MUTED, "--"),
        "halfway between": (middle, ACCENT, "-"),
    }
    for axes, name in zip(panels, titles, strict=True):
        for label, (place, colour, dash) in lines.items():
            axes.plot(found["epoch"], found[name][:, place], dash, color=colour, label=label)
        axes.set_ylim(bottom=0)
    add_legend(figure, *panels[0].get_legend_handles_labels())
    return FigureItem(
        figure,
        caption="The paper's Figure 2 remade: mean loss of the training images for two networks trained from "
        "initial weights and batches of their own, and for the network halfway between them, before and after "
        "the second was aligned to the first (weights, whole units).",
        alt="Loss against epoch of two networks and of the one halfway between, as trained and aligned",
    )


def figure_three(results: Results) -> FigureItem | None:
    """Remake Figure 3: transpositions before training, and what is left of them after it."""
    if "swaps" not in results.trees:
        return None
    found = results.trees["swaps"]["swaps"].to_dataset()
    titles = ("transpositions after", "distance", "loss barrier", "along the line")
    figure = new_figure(2 * _PANEL[0] + 0.3, 2 * _PANEL[1] + 0.6)
    panels = figure.subplots(2, 2).ravel()
    labels = ("transpositions (NoT)", "Euclidean", "nats", "transpositions (NoT)")
    before = "transpositions before training"
    under = (before, before, before, "position on the line")
    for axes, title, x_label, y_label in zip(panels, titles, under, labels, strict=True):
        style_axes(axes, title=title, x_label=x_label, y_label=y_label)
    counts = found["before"].values
    panels[0].plot(counts, counts, ":", color=MUTED, label="as before training")
    _band(panels[0], counts, found["after"].values, INK, "mean over runs, ±1 sd")
    for axes, name in ((panels[1], "distance"), (panels[2], "barrier")):
        _band(axes, counts, found[f"{name}_raw"].values, _AS_TRAINED, "as trained")
        _band(axes, counts, found[f"{name}_aligned"].values, _ALIGNED, "aligned")
    for counts in found["between"].values:
        panels[3].plot(found["position"], counts, color=MUTED, linewidth=0.9, alpha=0.8)
    for axes in panels[:2]:
        axes.legend(frameon=False, fontsize=TEXT_SIZE - 1, labelcolor=INK)
    return FigureItem(
        figure,
        caption="The paper's Figure 3 remade: pairs of networks from the same initial weights, those of the "
        "second permuted by a number of transpositions, each trained on batches in an order of its own. Bands are "
        "one standard deviation over runs. Below right: the transpositions that align a network on the line "
        "between the first and its most permuted twin to the first, a line for each run.",
        alt="Transpositions after training, distance and loss barrier against transpositions before; "
        "transpositions along the line between two networks",
    )


def _band(axes: Axes, x: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    mean, sd = values.mean(axis=0), values.std(axis=0)
    axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, mean, "o-", color=colour, markersize=3, label=label)


def figure_five(results: Results) -> FigureItem | None:
    """Remake Figure 5: standard deviations of weights, and accuracy of pruned networks."""
    shown = {
        "hmc-qi": ("draws as they are", _AS_TRAINED),
        "hmc-qr": ("aligned as in the paper", MUTED),
        "mean-diag": ("aligned to the iterated mean", ACCENT),
    }
    there = {n: look for n, look in shown.items() if n in results.trees}
    there = {n: look for n, look in there.items() if "pruning" in results.trees[n].children}
    if not there:
        return None
    figure = new_figure(2 * _PANEL[0] + 0.3, _PANEL[1] + 0.5)
    left, right = figure.subplots(1, 2)
    style_axes(left, title="spread of a weight", x_label="posterior sd", y_label="share of weights")
    style_axes(right, title="pruned mean", x_label="share of weights kept", y_label="accuracy")
    for name, (label, colour) in there.items():
        spread = results.trees[name]["spread"].to_dataset()
        share = spread["count"].values / spread["count"].values.sum()
        left.stairs(share, spread["edge"].values, color=colour, label=label)
        curve = results.trees[name]["pruning"].to_dataset()
        right.plot(curve["keep"], curve["accuracy_sd"], "o-", markersize=3, color=colour)
        right.plot(curve["keep"], curve["accuracy_random"], ":", color=colour)
    add_legend(figure, *left.get_legend_handles_labels())
    return FigureItem(
        figure,
        caption="The paper's Figure 5 remade. Left: standard deviations of the weights over HMC's draws (the prior's "
        "is 1). Right: accuracy of the mean when only the weights of lowest standard deviation are kept, biases "
        "aside; dotted: when as many are kept at random.",
        alt="Histogram of standard deviations of weights, and accuracy against the share of weights kept",
    )


def overview(results: Results) -> FigureItem | None:
    """Place every representation by how well it keeps the mean prediction, and how well the spread."""
    shown = [m for name, m in results.measured.items() if name not in ("hmc", "half-1", "half-2")]
    if not shown or "hmc" not in results.measured:
        return None
    figure: Figure = new_figure(7.4, 0.2 * len(shown) + 1.1)
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("averaged prediction", "one draw")
    under = ("total variation from HMC's, halved", "accuracy")
    groups = list(dict.fromkeys(m.row.group for m in shown))
    for axes, title, x_label in zip(panels, titles, under, strict=True):
        style_axes(axes, title=title, x_label=x_label)
    for place, found in enumerate(shown):
        colour = chain_colour(groups.index(found.row.group))
        for axes, value in zip(panels, _two_numbers(found), strict=True):
            axes.plot(value, place, "o", color=colour, markersize=5)
    panels[0].set_xscale("log")
    panels[0].set_yticks(range(len(shown)), [f"{m.row.label}" for m in shown])
    panels[0].invert_yaxis()
    if results.floor:
        panels[0].axvline(results.floor.total_variation, color=MUTED, linewidth=0.8, linestyle="--")
    truth = results.measured["hmc"].draw_accuracy
    panels[1].axvline(truth, color=MUTED, linewidth=0.8, linestyle="--")
    handles = [
        Line2D([], [], color=chain_colour(place), marker="o", linestyle="none", markersize=5)
        for place in range(len(groups))
    ]
    add_legend(figure, handles, [group.split(",")[0] for group in groups])
    return FigureItem(
        figure,
        caption="Every representation by two numbers. Left: how far its averaged prediction is from HMC's; dashed: "
        "the halves of HMC's chains from each other, below which nothing can be told apart. Right: the "
        "accuracy of a single draw; dashed: that of HMC's, which a faithful representation has too.",
        alt="Total variation and accuracy of one draw, a row for each representation",
    )


def _two_numbers(found: Measured) -> tuple[float, float]:
    return found.averaged.total_variation, found.draw_accuracy
