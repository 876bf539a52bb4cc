"""Two weights against each other, one panel per posterior.

Source: Pourzanjani, Jiang and Petzold 2017, Figure 1 (left): W1[1,1] against W2[1], counted from 1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from onebasin.base.errors import ArgumentError

from .picture import Picture
from .style import GRID, POINTS_TO_RASTERISE, add_chain_legend, chain_colour, new_panels


@dataclass(frozen=True, eq=False)
class WeightPair:
    """The draws of two weights."""

    first: Float[np.ndarray, "chain draw"]
    second: Float[np.ndarray, "chain draw"]


def plot_weight_scatter(
    pairs: Mapping[str, WeightPair],
    *,
    x_label: str = "W1[0,0]",
    y_label: str = "W2[0,0]",
    share_axes: bool = True,
    columns: int = 3,
) -> Picture:
    """Draw the scatter of two weights for several posteriors.

    Parameters
    ----------
    pairs
        The draws, by the posterior's name.
    x_label, y_label
        Names of the two weights.
    share_axes
        Whether all panels show the same ranges; otherwise each has its own, labelled ones.
    columns
        Panels in a row.
    """
    if not pairs:
        raise ArgumentError("`pairs` is empty: give the draws of at least one posterior.")
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
        _draw_pair(axes, pair)
    add_chain_legend(figure, max(pair.first.shape[0] for pair in pairs.values()))
    return figure


def _draw_pair(axes: Axes, pair: WeightPair) -> None:
    draw_points(axes, list(zip(pair.first, pair.second, strict=True)), chain_colour)


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
