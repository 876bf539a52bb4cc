"""Parameters against each other: two, a matrix of several, and modes.

Source: Pourzanjani, Jiang and Petzold 2017, Figure 1 (left): W1[1,1] against W2[1], counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.base.text import dotted
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.rhat_ess import mean_ranks
from onebasin.posteriors.view import View

from ..diagnostics.result import Diagnosis
from .marginals import Curve, density, intervals
from .posteriors import Drawn, Posteriors, Quantity, take, titled, views_of
from .style import (
    ACCENT,
    CHAIN_COLOURS,
    GRID,
    INK,
    LONGEST,
    POINTS_TO_RASTERISE,
    TEXT_SIZE,
    Picture,
    add_chain_legend,
    add_legend,
    chain_colour,
    log_scale,
    new_figure,
    new_panels,
    shortened,
    style_axes,
)


@checks_arguments
def plot_pair(
    posteriors: Posteriors,
    *entries: str,
    share_axes: bool = True,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Draw scalar parameters against each other: two, for one or several posteriors, or a matrix of more.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name; one if there are more than two parameters.
    *entries : str
        Scalar parameters, such as ``W1[0,0]``: on the horizontal and on the vertical axis, or at least three for a
        matrix. Without any, the matrix shows the four worst by R-hat and ESS.
    share_axes : bool
        Whether all panels of two parameters show the same ranges.
    align, diagnosis : see `forest`
        Same as in `forest`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per posterior, or a matrix with densities on its diagonal. Crosses mark divergences. The matrix
        has logarithmic axes for positive parameters that span a factor of 20 or more.

    Raises
    ------
    ValueError
        If a posterior lacks one of them, or one parameter is given.

    Examples
    --------
    >>> figure = ob.plot.pair(posterior, "mu[0]", "mu[1]")
    >>> matrix = ob.plot.pair(posterior)
    """
    if len(entries) == 1:
        raise ArgumentError("`entries` has one parameter: give two, more for a matrix, or none.")
    views = views_of(posteriors)
    if len(entries) == 2:
        return _two(views, *entries, share_axes=share_axes, align=align, diagnosis=diagnosis)
    if len(views) > 1:
        raise ArgumentError(
            "`posteriors` has several, and a matrix shows one: choose a posterior, or two parameters."
        )
    (view,) = views.values()
    if entries:
        names = [_entry(view, name) for name in entries]
        drawn = _scalars(view, names, align=align, diagnosis=diagnosis)
    else:
        drawn = take(view, None, MATRIX, align=align, diagnosis=diagnosis, worst=True)
    told = pairs_in_words(drawn.values, view.diverging)
    figure = draw_pair_grid(drawn.values, view.diverging)
    return figure.on_paper(drawn.alt(told), drawn.labelling)


COLOURED = len(CHAIN_COLOURS)
"""Modes that have a colour of their own; lighter ones are grey."""
MATRIX = 4
"""Parameters of a matrix where none are chosen."""


def _scalars(view: View, names: Sequence[str], **options: Any) -> Drawn:
    """Take the draws of chosen scalar parameters, in this order."""
    variables = list(dict.fromkeys(variable_of(name, view.variables) for name in names))
    return take(view, variables, len(names), entries=names, **options)


def _two(
    views: Mapping[str, View],
    first: str,
    second: str,
    *,
    share_axes: bool,
    align: bool,
    diagnosis: Diagnosis | None,
) -> Picture:
    """Draw two parameters against each other, one panel per posterior."""
    pairs, told, taken = {}, [], []
    for name, view in views.items():
        names = [_entry(view, entry) for entry in (first, second)]
        drawn = _scalars(view, names, align=align, diagnosis=diagnosis)
        taken.append(drawn)
        one, other = (drawn.values[entry] for entry in names)
        pairs[name] = Pair(one, other, view.diverging)
        both = {first: one, second: other}
        words = f"{intervals(both)} {pairs_in_words(both, view.diverging)}"
        told.append(f"{name}: {words}" if len(views) > 1 else words)
    figure = draw_pairs(titled(pairs), x_label=first, y_label=second, share_axes=share_axes)
    head = next((drawn for drawn in taken if drawn.labelling), taken[0])
    return figure.on_paper(head.alt(" ".join(told)), head.labelling)


def _entry(view: View, entry: str) -> str:
    """Return the name of one scalar parameter as the posterior spells it."""
    spelt = variable_of(entry, view.variables)
    variable = dotted(spelt)
    entry = variable + entry[len(spelt) :]  # labels of places may have slashes
    there = view.draws(variable) if variable in view.variables else None
    if there is None or entry not in there.names:
        known = ", ".join(there.names[:6] if there else view.variables[:6])
        raise ArgumentError(
            f"`{view.argument}` has no scalar parameter {entry!r}: choose one such as {known}."
        )
    return entry


def pairs_in_words(quantities: Mapping[str, Quantity], diverging: np.ndarray | None) -> str:
    """Say how quantities go together, and where divergences lie."""
    told = []
    for first, second in combinations(quantities, 2):
        r = rank_correlation(quantities[first], quantities[second])
        told.append(f"{first} and {second}: rank correlation {format_number(r, decimals=2)}.")
    if diverging is None or not diverging.any():
        told.append("Divergences were not recorded." if diverging is None else "No draw diverged.")
        return " ".join(told)
    count, total = format_number(int(diverging.sum())), format_number(diverging.size)
    sides = []
    for name, values in quantities.items():
        below = float((values[diverging] < np.median(values)).mean())
        side, share = ("below", below) if below >= 0.5 else ("above", 1 - below)
        median = format_number(float(np.median(values)))
        sides.append(f"their {name} is in {100 * share:.0f} % {side} its median {median}")
    told.append(f"{count} of {total} draws diverged; {'; '.join(sides)}.")
    return " ".join(told)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation; `scipy.stats`, which has it too, takes long to import."""
    return float(np.corrcoef(mean_ranks(first.ravel()), mean_ranks(second.ravel()))[0, 1])


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


def draw_pair_grid(
    quantities: Mapping[str, Quantity], diverging: Bool[np.ndarray, "chain draw"] | None
) -> Picture:
    """Draw quantities against each other below the diagonal, and their densities on it; what diverged is marked."""
    count, names = len(quantities), [shortened(name, LONGEST) for name in quantities]
    figure = new_figure(1.75 * count + 0.6, 1.5 * count + 0.4)
    grid = figure.subplots(count, count, squeeze=False)
    is_log = [is_wide(values) for values in quantities.values()]
    bad = np.zeros((1, 1), bool) if diverging is None else diverging
    for row, values in enumerate(quantities.values()):
        for column, others in enumerate(quantities.values()):
            axes = style_axes(
                grid[row, column],
                x_label=names[column] if row == count - 1 else "",
                y_label=names[row] if column == 0 < row else "",
            )
            axes.set_visible(column <= row)
            axes.tick_params(labelbottom=row == count - 1, labelleft=column == 0 < row)
            if column == row:
                axes.plot(*_density_on(values, is_log[row]), color=ACCENT, linewidth=1.2)
                axes.set_ylim(bottom=0)
                axes.tick_params(left=False)
            elif column < row:
                draw_points(axes, [(others.ravel(), values.ravel())], chain_colour)
                if bad.any():
                    axes.plot(others[bad], values[bad], "x", color=INK, markersize=4)
            axes.locator_params(nbins=3)
            if is_log[column]:
                log_scale(axes, "x")
            if column < row and is_log[row]:
                log_scale(axes, "y")
    return figure


FACTOR = 20.0
"""Ratio of the 99 % to the 1 % quantile from which on a positive quantity has a logarithmic axis."""


def is_wide(values: Quantity) -> bool:
    """Tell whether a quantity is positive and spans so much that only its logarithm can be read."""
    low, high = np.quantile(values, [0.01, 0.99])
    return bool(values.min() > 0 and high > FACTOR * low)


def _density_on(values: Quantity, is_log: bool) -> Curve:
    """Estimate a density over the axis: of the logarithm, where the axis is logarithmic."""
    if not is_log:
        return density(values)
    x, y = density(np.log(values))
    return np.exp(x), y


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
