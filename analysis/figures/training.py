"""Training loss against epoch, one line a member of an ensemble."""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from onebasin.base.errors import ArgumentError

from .style import ACCENT, POINTS_TO_RASTERISE, new_figure, style_axes

MOST_LINES = 50


def plot_loss(loss: Float[np.ndarray, "member epoch"]) -> Figure:
    """Draw the training loss of the members of an ensemble, the first 50 of many."""
    if not loss.size:
        raise ArgumentError("`loss` is empty: give the loss of at least one member at one epoch.")
    figure = new_figure(7.6, 2.8)
    axes = style_axes(figure.subplots(), x_label="epoch", y_label="loss")
    shown = loss[:MOST_LINES]
    axes.plot(
        np.arange(1, shown.shape[1] + 1),
        shown.T,
        color=ACCENT,
        linewidth=0.8,
        alpha=max(0.25, 1 / len(shown) ** 0.5),
        rasterized=shown.size > POINTS_TO_RASTERISE,
    )
    late = shown[:, shown.shape[1] // 20 :]
    known = late[np.isfinite(late)]
    if known.size and known.min() > 0 and known.max() > 30 * known.min():
        axes.set_yscale("log")
    return figure
