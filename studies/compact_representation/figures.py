"""The study's figures: the paper's Figures 2, 3 and 5, and all representations at a glance."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from onebasin.analysis.figures import style
from onebasin.analysis.page.page import FigureItem

from ..lab import Frames, Outcomes, read
from ..lab.figures import plot_cells
from .design import DYNAMICS, SWAPS, Config, rows
from .text import GAUSSIAN, PAIRS

_PANEL, _MARGIN = (3.1, 2.5), (0.3, 0.5)
_AS_TRAINED, _ALIGNED = style.chain_colour(1), style.ACCENT
_PRUNED = {
    "hmc-qi": ("draws as they are", _AS_TRAINED),
    "hmc-qr": ("aligned as in the paper", style.MUTED),
    "mean-diag": ("aligned to the iterated mean", style.ACCENT),
}


def figures(
    config: Config, outcomes: Outcomes, frames: Frames
) -> Mapping[str, Iterable[FigureItem | None]]:
    """Draw what can be drawn, by chapter."""
    there = {cell.key for cell in outcomes}
    shown = [row for row in rows(config) if row.name in _PRUNED and row.key in there]
    pruned = {row.name: outcomes.by_key(row.key) for row in shown}
    trained = ((DYNAMICS, "dynamics", figure_two), (SWAPS, "swaps", figure_three))
    return {
        GAUSSIAN: (*overview(frames), figure_five(pruned)),
        PAIRS: [draw(outcomes.by_key(k)[g].to_dataset()) for k, g, draw in trained if k in there],
    }


def figure_two(found: xr.Dataset) -> FigureItem:
    """Remake Figure 2: losses of two networks and of those between them, as training goes on."""
    titles = ("as trained", "second aligned to the first")
    figure, panels = style.new_panels(
        titles, columns=2, panel_size=_PANEL, margin=_MARGIN, x_label="epoch", y_label="loss (nats)"
    )
    middle = found.sizes["position"] // 2
    for axes, name in zip(panels, ("loss_raw", "loss_aligned"), strict=True):
        losses = found[name].values
        axes.plot(found["epoch"], losses[:, 0], "-", color=style.INK, label="first network")
        axes.plot(found["epoch"], losses[:, -1], "--", color=style.MUTED, label="second network")
        axes.plot(
            found["epoch"], losses[:, middle], "-", color=style.ACCENT, label="halfway between"
        )
        axes.set_ylim(bottom=0)
    style.add_legend(figure, *panels[0].get_legend_handles_labels())
    return FigureItem(
        figure,
        caption="The paper's Figure 2 remade: mean loss of the training images for two networks trained from "
        "initial weights and batches of their own, and for the network halfway between them, before and after "
        "the second was aligned to the first (weights, whole units).",
        alt="Loss against epoch of two networks and of the one halfway between, as trained and aligned",
    )


def figure_three(found: xr.Dataset) -> FigureItem:
    """Remake Figure 3: transpositions before training, and what is left of them after it."""
    figure = style.new_figure(2 * _PANEL[0] + 0.3, 2 * _PANEL[1] + 0.6)
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


def figure_five(trees: Mapping[str, xr.DataTree]) -> FigureItem | None:
    """Remake Figure 5: standard deviations of weights, and accuracy of pruned networks."""
    if not trees:
        return None
    figure = style.new_figure(2 * _PANEL[0] + 0.3, _PANEL[1] + 0.5)
    left, right = figure.subplots(1, 2)
    style.style_axes(
        left, title="spread of a weight", x_label="posterior sd", y_label="share of weights"
    )
    style.style_axes(
        right, title="pruned mean", x_label="share of weights kept", y_label="accuracy"
    )
    for name, tree in trees.items():
        label, colour = _PRUNED[name]
        spread, curve = (tree[group].to_dataset() for group in ("spread", "pruning"))
        share = spread["count"].values / spread["count"].values.sum()
        left.stairs(share, spread["edge"].values, color=colour, label=label)
        right.plot(curve["keep"], curve["accuracy_sd"], "o-", markersize=3, color=colour)
        right.plot(curve["keep"], curve["accuracy_random"], ":", color=colour)
    style.add_legend(figure, *left.get_legend_handles_labels())
    return FigureItem(
        figure,
        caption="The paper's Figure 5 remade. Left: standard deviations of the weights over HMC's draws (the prior's "
        "is 1). Right: accuracy of the mean when only the weights of lowest standard deviation are kept, biases "
        "aside; dotted: when as many are kept at random.",
        alt="Histogram of standard deviations of weights, and accuracy against the share of weights kept",
    )


def overview(frames: Frames) -> Iterator[FigureItem]:
    """Place every representation by how well it keeps the mean prediction, and how well the spread."""
    rows, floor = read("rows", frames), read("floor", frames)
    truth = rows.find(name="hmc")
    shown = [row for row in rows if row["name"] not in ("hmc", "half-1", "half-2")]
    if not shown or truth is None:
        return
    panels = (
        (
            "total_variation",
            "total variation of averaged predictions from HMC's, halved",
            next(iter(floor.column("total_variation")), None),
            "How far each representation's averaged prediction is from HMC's; dashed: the halves of HMC's chains "
            "from each other, below which nothing can be told apart.",
        ),
        (
            "draw_accuracy",
            "accuracy of one draw",
            truth["draw_accuracy"],
            "The accuracy of a single draw; dashed: that of HMC's, which a faithful representation has too.",
        ),
    )
    for measure, x_label, limit, caption in panels:
        values: dict[str, dict[str, float]] = {row["group"]: {} for row in shown}
        for row in shown:
            values[row["group"]][row["label"]] = row[measure]
        log_scale = measure == "total_variation"
        figure = plot_cells(values, x_label=x_label, limit=limit, log_scale=log_scale)
        yield FigureItem(figure, caption=caption, alt=f"{x_label.capitalize()}, by representation")
