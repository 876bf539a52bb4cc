"""Curves over the width of the classifiers: fits, and distances to the nearest equivalent mode beside the bounds."""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, SymmetricalLogLocator

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots.style import MUTED, add_legend, chain_colour, new_figure, style_axes
from onebasin.truth.proximity import mean_bound, theorem_bound

from ...lab import Frames, Row, read
from .nearness import sources
from .widths import beside_mfvi, gain, widths

LINEAR = 1.0
"""Nats up to which the axis of gains is linear; logarithmic beyond."""
LEAST = 1e-3
"""Distances below this are not shown: pairs of units that training has made equal, at zero or nearly."""
_SHIFT = 0.05
"""By how much methods are moved apart, as a share of a doubling of the width, so that error bars do not hide others."""


def curves(frames: Frames) -> FigureItem | None:
    """Draw gains, accuracy, log score and information over the width."""
    fits = read("fits", frames)
    if not fits:
        return None
    figure = new_figure(7.6, 5.2)
    panels = figure.subplots(2, 2).ravel()
    titles: dict[str, tuple[str, Iterable[Row], Callable[[Row], Sequence[float]]]] = {
        "symmetrised ELBO, gain over MFVI": ("nats", beside_mfvi(frames), _gains),
        "information, share of log |G|": ("", fits, _shares),
        "test accuracy": ("", fits, itemgetter("accuracy")),
        "test log score": ("nats", fits, itemgetter("log_score")),
    }
    names = fits.levels("method")
    for axes, (title, (unit, rows, values)) in zip(panels, titles.items(), strict=True):
        style_axes(axes, title=title, x_label="hidden units", y_label=unit)
        every = sorted(rows, key=itemgetter("width"))
        for place, name in enumerate(names):
            if mine := [row for row in every if row["method"] == name]:
                there = [values(row) for row in mine]
                bar = [_bar(v, of_mean=values is _gains) for v in there]
                _series(axes, mine, [np.mean(v) for v in there], (bar, bar), place, len(names))
        _set_widths(axes, widths(fits))
    panels[0].axhline(0, color=MUTED, linewidth=0.8)
    panels[0].set_yscale("symlog", linthresh=LINEAR)
    panels[0].set_ylim(bottom=min(panels[0].get_ylim()[0], -LINEAR / 4))
    ticks = SymmetricalLogLocator(base=10, linthresh=LINEAR, subs=(1, 2, 5))
    panels[0].yaxis.set_major_locator(ticks)
    _plain_numbers(panels[0])
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


def nearest_modes(frames: Frames) -> FigureItem | None:
    """Draw distances and separations over the width."""
    every = list(sources(frames))
    if not every:
        return None
    common = frames["classifiers"].rows[0]
    figure = new_figure(7.6, 3.9)
    left, right = figure.subplots(1, 2)
    style_axes(left, title="nearest copy", x_label="hidden units", y_label="distance / ||w||")
    style_axes(right, title="least separation", x_label="hidden units", y_label="sds of q")
    all_widths = sorted({row["width"] for rows in every for row in rows})
    _bounds(left, all_widths, common["unit_size"])
    for place, rows in enumerate(every):
        for axes, measure in ((left, "{}"), (right, "{}_separation")):
            names = [measure.format(word) for word in ("median", "least", "largest")]
            known = [row for row in rows if row[names[0]] is not None]  # a record may lack it
            if known:
                middle, least, most = (np.array([row[n] for row in known]) for n in names)
                bars = (middle - least, most - middle)
                _series(axes, known, middle, bars, place, len(every))
    if common["threshold"] is not None:
        right.axhline(common["threshold"], color=MUTED, linewidth=0.8, linestyle="--")
    left.set_yscale("log")
    left.set_ylim(bottom=max(LEAST, left.get_ylim()[0]))
    _plain_numbers(left)
    right.set_ylim(bottom=0)
    for axes in (left, right):
        _set_widths(axes, all_widths)
    add_legend(figure, *left.get_legend_handles_labels(), columns=3)
    return FigureItem(
        figure,
        caption="Left: distance of networks to their nearest permuted copy, relative to ||w||: medians, and bars "
        "from the least to the largest, beside Theorem 3.1 and two bounds that are sharper at these widths; what "
        f"is below {LEAST:g} (dead units, all alike) is not shown. Right: half the distance between a mode and its "
        "copy in standard deviations of q, for the two units where it is least; dashed: what it takes for one "
        "Gaussian between two modes to have an optimum at a mode. Marks are moved apart a little.",
        alt="Relative distance to the nearest equivalent mode against hidden units with bounds; least separation of "
        "two units in standard deviations",
    )


def _bounds(axes: Axes, all_widths: Sequence[int], unit_size: int) -> None:
    fine = np.geomspace(max(all_widths[0], 2), all_widths[-1], 60)
    lines = {
        "2 / √(H − 1)": ([mean_bound(width) for width in fine], "--"),
        "Theorem 3.1": ([theorem_bound(width, unit_size) for width in fine], ":"),
    }
    for label, (values, dash) in lines.items():
        axes.plot(fine, values, dash, color=MUTED, label=label)
    axes.axhline(2.0, color=MUTED, linewidth=0.8, label="triangle inequality")


def _series(
    axes: Axes, rows: Sequence[Row], middle: Any, bars: tuple[Any, Any], place: int, total: int
) -> None:
    """Draw one of so many series over the width, with bars below and above; marks are moved apart."""
    shift = 2.0 ** (_SHIFT * (place - (total - 1) / 2))
    axes.errorbar(
        [row["width"] * shift for row in rows],
        middle,
        yerr=bars,
        fmt="o-",
        color=chain_colour(place),
        markersize=4,
        linewidth=1.0,
        elinewidth=0.8,
        capsize=2,
        label=rows[0]["label"],
    )


def _set_widths(axes: Axes, widths: Sequence[int]) -> None:
    """Make the horizontal axis one of doublings of the width, with a tick at every width."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [f"{width}" for width in widths])
    axes.minorticks_off()


def _plain_numbers(axes: Axes) -> None:
    """Write the numbers of a logarithmic vertical axis without powers."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _gains(row: Row) -> Sequence[float]:
    return list(gain(row, "symmetrised").differences)


def _shares(fit: Row) -> Sequence[float]:
    """Mutual information over its largest value, log |G|."""
    return list(np.array(fit["lower"]) / fit["log_order"])


def _bar(values: Sequence[float], *, of_mean: bool) -> float:
    if len(values) < 2:
        return 0.0
    return float(np.std(values, ddof=1) / (np.sqrt(len(values)) if of_mean else 1.0))
