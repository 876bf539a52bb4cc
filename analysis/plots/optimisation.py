"""The ELBO of variational fits and the training loss of ensembles, against the optimiser's steps.

Convention: the ELBO, in nats, grows when better. Its first values are often lower by orders of
magnitude; the axis then starts where the last two thirds of every trace fit, and a remark says so.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from onebasin.base.checks import checks_arguments
from onebasin.base.table import format_number

from ..summaries.variational import Elbo, elbo
from .posteriors import Posteriors, named
from .style import (
    ACCENT,
    CHAIN_COLOURS,
    MUTED,
    POINTS_TO_RASTERISE,
    TEXT_SIZE,
    Picture,
    add_legend,
    chain_colour,
    new_figure,
    style_axes,
)

ElboTrace = tuple[Float[np.ndarray, " evaluation"], Float[np.ndarray, " evaluation"]]
"""The steps of one fit at which the ELBO was evaluated, and its values."""
MOST_LINES = 50
"""Members of an ensemble whose loss is drawn."""


@checks_arguments
def plot_elbo(posteriors: Posteriors | Elbo | Mapping[str, Elbo]) -> Picture:
    """Draw the ELBO of variational fits against the optimiser's iteration.

    Parameters
    ----------
    posteriors : Elbo, posterior, or mapping of str to these
        A posterior by `advi` or `symmetrised_vi`, or several by name; or what `elbo` made of them. Every fit of one
        has a line.

    Returns
    -------
    matplotlib.figure.Figure
        In nats; larger is better, and only fits of the same model of the same data can be compared. Of symmetrised
        VI it is the symmetrised ELBO, which is what was maximised.

    Raises
    ------
    ValueError
        If a posterior recorded no ELBO.

    Examples
    --------
    >>> fit = ob.advi(target, iterations=2000, seed=1)
    >>> figure = ob.plot.elbo(fit)
    """
    several = named(posteriors)
    traces: dict[str, ElboTrace] = {}
    for name, given in several.items():
        found = given if isinstance(given, Elbo) else elbo(given)
        for k, values in enumerate(found.trace):
            fit = f"fit {k}" if len(several) == 1 else f"{name}, fit {k}"
            traces[fit if len(found.trace) > 1 else name] = (found.iteration, values)
    told = [elbo_in_words(name, trace) for name, trace in traces.items()]
    return draw_elbo(traces).on_paper(" ".join(told))


def draw_elbo(traces: Mapping[str, ElboTrace]) -> Picture:
    """Draw ELBO traces, by the name of the fit."""
    figure = new_figure(7.6, 3.2)
    axes = figure.subplots()
    for place, (iteration, values) in enumerate(traces.values()):
        axes.plot(
            iteration,
            values,
            color=chain_colour(place),
            linewidth=1.1,
            linestyle="-" if place < len(CHAIN_COLOURS) else (0, (4, 2)),
            marker="." if np.size(values) < 40 else "",
        )
    lower, upper = elbo_range(traces)
    hidden = sum(int((values < lower).sum()) for _, values in traces.values())
    style_axes(axes, x_label="iteration", y_label="ELBO (nats)")
    axes.set_ylim(lower, upper)
    if hidden:
        early = "1 early value lies" if hidden == 1 else f"{hidden} early values lie"
        remark = axes.text(
            1.0, 1.01, f"{early} below the axis", ha="right", va="bottom", transform=axes.transAxes
        )
        remark.set(fontsize=TEXT_SIZE - 1, color=MUTED)
    if len(traces) > 1:
        add_legend(figure, axes.lines, list(traces), columns=3)
    return figure


def elbo_range(traces: Mapping[str, ElboTrace]) -> tuple[float, float]:
    """Return an axis range in which the last two thirds of every trace fit, with a margin."""
    late = [values[np.size(values) // 3 :] for _, values in traces.values()]
    values = np.concatenate(late)
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    margin = 0.08 * float(np.ptp(values)) or 1.0
    return float(values.min()) - margin, float(values.max()) + margin


def elbo_in_words(name: str, trace: ElboTrace) -> str:
    """Say where an ELBO begins, and where it ends."""
    iteration, values = trace
    known = values[np.isfinite(values)]
    if not known.size:
        return f"{name}: no ELBO is finite."
    first, last = format_number(float(known[0])), format_number(float(known[-1]))
    return f"{name}: the ELBO goes from {first} to {last} in {format_number(int(iteration[-1]))} iterations."


def draw_loss(loss: Float[np.ndarray, "member epoch"]) -> Picture:
    """Draw the training loss of the members of an ensemble, the first 50 of many."""
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
