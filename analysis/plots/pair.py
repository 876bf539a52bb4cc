"""Two quantities against each other: parameters, a panel a posterior, or the draws of modes, one colour a mode.

Source: Pourzanjani, Jiang and Petzold 2017, Figure 1 (left): W1[1,1] against W2[1], counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.base.text import dotted
from onebasin.posteriors import schema
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.view import View

from .posteriors import Posteriors, titled, views_of
from .style import (
    CHAIN_COLOURS,
    GRID,
    INK,
    POINTS_TO_RASTERISE,
    TEXT_SIZE,
    Picture,
    add_chain_legend,
    add_legend,
    chain_colour,
    new_figure,
    new_panels,
    style_axes,
)

COLOURED = len(CHAIN_COLOURS)
"""Modes that have a colour of their own; lighter ones are grey."""


@checks_arguments
def plot_pair(
    posteriors: Posteriors, first: str, second: str, *, share_axes: bool = True
) -> Picture:
    """Draw two scalar parameters against each other, chains in colours, for one or several posteriors.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name.
    first, second : str
        Scalar parameters, such as ``W1[0,0]``: on the horizontal and on the vertical axis.
    share_axes : bool
        Whether all panels show the same ranges.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a posterior; divergent transitions are marked by crosses.

    Raises
    ------
    ValueError
        If a posterior lacks one of them.

    Examples
    --------
    >>> figure = ob.plot.pair(posterior, "mu[0]", "mu[1]")
    """
    from scipy.stats import spearmanr

    pairs, told = {}, []
    for name, view in views_of(posteriors).items():
        diverging = view.stat(schema.DIVERGING)
        pair = pairs[name] = Pair(_draws_of(view, first), _draws_of(view, second), diverging)
        ends = []
        for entry, values in ((first, pair.first), (second, pair.second)):
            low, high = np.quantile(values, [0.05, 0.95])
            ends.append(f"{entry} lies between {format_number(low)} and {format_number(high)}")
        r = float(spearmanr(pair.first.ravel(), pair.second.ravel()).statistic)
        ends.append(f"rank correlation {format_number(r, decimals=2)}")
        if diverging is not None:
            ends.append(f"divergences: {int(np.sum(diverging))}")
        told.append(f"{name}: in 90 % of draws {ends[0]}, and {'; '.join(ends[1:])}.")
    figure = draw_pairs(titled(pairs), x_label=first, y_label=second, share_axes=share_axes)
    return figure.on_paper(" ".join(told))


def _draws_of(view: View, entry: str) -> np.ndarray:
    """Draws of one scalar parameter."""
    spelt = variable_of(entry, view.variables)
    variable = dotted(spelt)
    entry = variable + entry[len(spelt) :]  # labels of places may have slashes
    there = view.draws(variable) if variable in view.variables else None
    if there is None or entry not in there.names:
        known = ", ".join(there.names[:6] if there else view.variables[:6])
        raise ArgumentError(
            f"`{view.argument}` has no scalar parameter {entry!r}: choose one such as {known}."
        )
    return there.of(entry)


@dataclass(frozen=True, eq=False)
class Pair:
    """The draws of two weights, and which of them diverged."""

    first: Float[np.ndarray, "chain draw"]
    second: Float[np.ndarray, "chain draw"]
    diverging: Shaped[np.ndarray, "chain draw"] | None = None


def draw_pairs(
    pairs: Mapping[str, Pair],
    *,
    x_label: str = "W1[0,0]",
    y_label: str = "W2[0,0]",
    share_axes: bool = True,
    columns: int = 3,
) -> Picture:
    """Draw two quantities against each other, a panel a posterior; axes that are not shared are labelled in each."""
    figure, panels = new_panels(
        pairs,
        columns=columns,
        panel_size=(2.75, 2.6) if len(pairs) > 1 else (4.6, 3.6),
        margin=(0.4, 0.5),
        x_label=x_label,
        y_label=y_label,
        share_axes=share_axes,
    )
    for axes, pair in zip(panels, pairs.values(), strict=True):
        draw_points(axes, list(zip(pair.first, pair.second, strict=True)), chain_colour)
        if pair.diverging is not None and (bad := pair.diverging.astype(bool)).any():
            axes.plot(
                pair.first[bad], pair.second[bad], "x", color=INK, markersize=5, label="divergent"
            )
            axes.legend(frameon=False, fontsize=TEXT_SIZE, labelcolor=INK)
    add_chain_legend(figure, max(pair.first.shape[0] for pair in pairs.values()))
    return figure


def draw_points(
    axes: Axes,
    groups: Sequence[tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]],
    colour: Callable[[int], str],
) -> None:
    """Draw groups of points, each in the colour of its number; where there are many, small and as an image."""
    total = sum(len(first) for first, _ in groups)
    for number, (first, second) in enumerate(groups):
        axes.scatter(
            first,
            second,
            s=9.0 if total <= 1000 else 4.0,
            color=colour(number),
            alpha=0.35,
            linewidths=0,
            rasterized=total > POINTS_TO_RASTERISE,
        )
    axes.grid(axis="x", visible=True, color=GRID, linewidth=0.6)
    axes.locator_params(nbins=5)


def draw_modes(
    points: Mapping[str, Float[np.ndarray, "draw 2"]], *, x_label: str, y_label: str
) -> Picture:
    """Draw two quantities, one colour a mode, by its name in the legend, the heaviest mode first."""
    figure = new_figure(4.6, 3.9)
    axes = style_axes(figure.subplots(), x_label=x_label, y_label=y_label)
    draw_points(axes, [(drawn[:, 0], drawn[:, 1]) for drawn in points.values()], _colour)
    handles = [
        Line2D([], [], color=_colour(number), marker="o", markersize=5, linestyle="none")
        for number in range(min(len(points), COLOURED))
    ]
    add_legend(figure, handles, list(points)[:COLOURED], columns=2)
    return figure


def _colour(number: int) -> str:
    return chain_colour(number) if number < COLOURED else GRID
