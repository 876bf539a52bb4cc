"""Curves over the width of the classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, SymmetricalLogLocator

from onebasin.analysis.figures.style import MUTED, add_legend, chain_colour, new_figure, style_axes
from onebasin.analysis.report import FigureItem

from .widths import Fits, PerFit, WidthResults
from .widths_tables import share

LINEAR = 1.0
"""Nats up to which the axis of gains is linear; logarithmic beyond."""
_SHIFT = 0.05
"""By how much methods are moved apart, as a share of a doubling of the width, so that error bars do not hide others."""

Value = Callable[[WidthResults, Fits], PerFit | None]


def curves(results: WidthResults) -> FigureItem | None:
    """Draw gains, accuracy, log score and information over the width."""
    if not results.widths:
        return None
    figure = new_figure(7.6, 5.2)
    panels = figure.subplots(2, 2).ravel()
    titles = {
        "symmetrised ELBO, gain over MFVI": ("nats", _gain),
        "information, share of log |G|": ("", lambda results, fits: share(fits)),
        "test accuracy": ("", lambda results, fits: fits.accuracy),
        "test log score": ("nats", lambda results, fits: fits.log_score),
    }
    for axes, (title, (unit, value)) in zip(panels, titles.items(), strict=True):
        style_axes(axes, title=title, x_label="hidden units", y_label=unit)
        _lines(axes, results, value)
        set_widths(axes, results.widths)
    panels[0].axhline(0, color=MUTED, linewidth=0.8)
    panels[0].set_yscale("symlog", linthresh=LINEAR)
    panels[0].set_ylim(bottom=min(panels[0].get_ylim()[0], -LINEAR / 4))
    ticks = SymmetricalLogLocator(base=10, linthresh=LINEAR, subs=(1, 2, 5))
    panels[0].yaxis.set_major_locator(ticks)
    plain_numbers(panels[0])
    add_legend(figure, *panels[2].get_legend_handles_labels(), columns=3)
    return FigureItem(
        figure,
        caption="Every method over the width, means over seeds. Top left: paired differences of the symmetrised ELBO "
        "from that of MFVI's fits, by the same estimator, bars of one standard error, on a scale that is linear up "
        f"to {LINEAR:g} nat and logarithmic beyond. Elsewhere bars of one standard deviation over seeds. Marks are "
        "moved apart a little.",
        alt="Gain in symmetrised ELBO, share of information, test accuracy and log score against the hidden units, a "
        "line for each method",
    )


def set_widths(axes: Axes, widths: Sequence[int]) -> None:
    """Make the horizontal axis one of doublings of the width, with a tick at every width."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [f"{width}" for width in widths])
    axes.minorticks_off()


def plain_numbers(axes: Axes) -> None:
    """Write the numbers of a logarithmic vertical axis without powers."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def beside(place: int, total: int) -> float:
    """Factor by which the widths of a series are moved, of so many series."""
    return float(2.0 ** (_SHIFT * (place - (total - 1) / 2)))


def _gain(results: WidthResults, fits: Fits) -> PerFit | None:
    plain = results.mfvi(fits.width)
    return None if plain is None or plain is fits else fits.symmetrised - plain.symmetrised


def _lines(axes: Axes, results: WidthResults, value: Value) -> None:
    names = list(dict.fromkeys(name for _, name in results.fits))
    for place, name in enumerate(names):
        found = [results.fits[w, name] for w in results.widths if (w, name) in results.fits]
        values = [value(results, fits) for fits in found]
        there = [(f.width, v) for f, v in zip(found, values, strict=True) if v is not None]
        if not there:
            continue
        shift = beside(place, len(names))
        gains = value is _gain
        axes.errorbar(
            [width * shift for width, _ in there],
            [v.mean() for _, v in there],
            yerr=[_bar(v, of_mean=gains) for _, v in there],
            fmt="o-",
            color=chain_colour(place),
            markersize=4,
            linewidth=1.0,
            elinewidth=0.8,
            capsize=2,
            label=found[0].method.label,
        )


def _bar(values: PerFit, *, of_mean: bool) -> float:
    if len(values) < 2:
        return 0.0
    return float(values.std(ddof=1) / (np.sqrt(len(values)) if of_mean else 1.0))
