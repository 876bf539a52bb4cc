"""ELBO against iteration, one line per variational fit.

Convention: the ELBO, in nats, grows when better. Its first values are often lower by orders of
magnitude; the axis then starts where the last two thirds of every trace fit, and a remark says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from onebasin.base.errors import ArgumentError

from .picture import Picture
from .style import CHAIN_COLOURS, MUTED, TEXT_SIZE, add_legend, chain_colour, new_figure, style_axes


@dataclass(frozen=True, eq=False)
class ElboTrace:
    """The recorded values of one fit."""

    iteration: Float[np.ndarray, " evaluation"]
    elbo: Float[np.ndarray, " evaluation"]


def plot_elbo(traces: Mapping[str, ElboTrace]) -> Picture:
    """Draw ELBO traces.

    Parameters
    ----------
    traces
        The traces, by the fit's name.
    """
    if not traces or not any(np.size(trace.elbo) for trace in traces.values()):
        raise ArgumentError("`traces` holds no ELBO: give at least one fit with recorded values.")
    figure = new_figure(7.6, 3.2)
    axes = figure.subplots()
    for place, trace in enumerate(traces.values()):
        axes.plot(
            trace.iteration,
            trace.elbo,
            color=chain_colour(place),
            linewidth=1.1,
            linestyle="-" if place < len(CHAIN_COLOURS) else (0, (4, 2)),
            marker="." if np.size(trace.elbo) < 40 else "",
        )
    lower, upper = elbo_range(traces)
    hidden = sum(int((np.asarray(trace.elbo) < lower).sum()) for trace in traces.values())
    style_axes(axes, x_label="iteration", y_label="ELBO (nats)")
    axes.set_ylim(lower, upper)
    if hidden:
        early = "1 early value lies" if hidden == 1 else f"{hidden} early values lie"
        _remark(axes, f"{early} below the axis")
    if len(traces) > 1:
        add_legend(figure, axes.lines, list(traces), columns=3)
    return figure


def _remark(axes: Axes, text: str) -> None:
    remark = axes.text(1.0, 1.01, text, ha="right", va="bottom", transform=axes.transAxes)
    remark.set(fontsize=TEXT_SIZE - 1, color=MUTED)


def elbo_range(traces: Mapping[str, ElboTrace]) -> tuple[float, float]:
    """Return an axis range in which the last two thirds of every trace fit, with a margin."""
    late = [np.asarray(trace.elbo)[np.size(trace.elbo) // 3 :] for trace in traces.values()]
    values = np.concatenate(late)
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    margin = 0.08 * float(np.ptp(values)) or 1.0
    return float(values.min()) - margin, float(values.max()) + margin
