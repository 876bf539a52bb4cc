"""Figures of alignment: how often it is wrong, and aligned posteriors against the truth that made the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from onebasin.analysis.plots import style
from onebasin.base.checks import check_class
from onebasin.base.numbers import format_number

from .alignment_failures import RULES, FailureRates
from .alignment_recovery import Recovery


def plot_failure_rates(rates: FailureRates) -> style.Picture:
    """Draw what `failure_rates` found: the share of draws that each rule labels wrong, and the least there can be.

    Parameters
    ----------
    rates : FailureRates
        What `failure_rates` returned.

    Returns
    -------
    matplotlib.figure.Figure
        Means over repeats, the least and the largest as whiskers, against the separation of neighbouring means in
        standard deviations.

    Examples
    --------
    >>> planted = ob.truth.PlantedComponents(components=2, draws=100, repeats=2)
    >>> figure = ob.plot.failure_rates(ob.truth.failure_rates([1.0, 3.0], planted))
    """
    check_class("rates", rates, FailureRates, remedy="give what `failure_rates` returned")
    told = [
        f"{words}: {_in_words(rates.rates[rule].mean(axis=0), rates.separations)}"
        for rule, words in RULES.items()
        if rule in rates.rates
    ]
    best = _in_words(rates.optimal.mean(axis=0), rates.separations)
    return draw_failure_rates(rates).on_paper(
        f"Share of draws labelled wrong. {'; '.join(told)}; best possible: {best}."
    )


def draw_failure_rates(rates: FailureRates) -> style.Picture:
    """Draw failure rates against separation: means over repeats, the least and the largest as whiskers."""
    figure = style.new_figure(6.4, 3.6)
    axes = style.style_axes(
        figure.subplots(),
        x_label="separation of neighbouring means (sds)",
        y_label="draws labelled wrong",
    )
    for place, (rule, found) in enumerate(rates.rates.items()):
        middle = found.mean(axis=0)
        reach = np.stack([middle - found.min(axis=0), found.max(axis=0) - middle])
        axes.errorbar(
            rates.separations,
            middle,
            yerr=reach,
            color=style.chain_colour(place),
            marker="o",
            markersize=3.5,
            linewidth=1.1,
            elinewidth=0.8,
            label=RULES[rule],
        )
    best = rates.optimal.mean(axis=0)
    axes.plot(
        rates.separations, best, color=style.INK, linestyle=(0, (4, 2)), label="best possible"
    )
    axes.set_ylim(0.0, 1.0)
    axes.legend(frameon=False, fontsize=style.TEXT_SIZE, labelcolor=style.INK)
    return figure


def _in_words(wrong: np.ndarray, separations: np.ndarray) -> str:
    return ", ".join(
        f"{format_number(float(rate), decimals=3)} at {separation:g} sds"
        for rate, separation in zip(wrong, separations, strict=True)
    )


def plot_recovery(found: Mapping[str, Recovery]) -> Figure:
    """Draw posterior means and 95 % intervals against true values, a panel each, by its title."""
    figure, panels = style.new_panels(
        list(found),
        columns=3,
        panel_size=(2.6, 2.3),
        margin=(0.4, 0.4),
        x_label="truth",
        y_label="aligned posterior",
        share_axes=False,
    )
    for axes, gap in zip(panels, found.values(), strict=True):
        ends = [min(gap.truth.min(), gap.low.min()), max(gap.truth.max(), gap.high.max())]
        axes.plot(ends, ends, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.vlines(gap.truth, gap.low, gap.high, color=style.ACCENT, linewidth=0.8, alpha=0.6)
        axes.plot(gap.truth, gap.mean, "o", color=style.INK, markersize=2.5)
    return figure
