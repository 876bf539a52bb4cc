"""The study's figures."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from onebasin.analysis.alignment.failure_rates import FailureRates
from onebasin.analysis.figures.cells import plot_cells
from onebasin.analysis.figures.failure_rates import plot_failure_rates
from onebasin.analysis.figures.style import ACCENT, INK, MUTED, new_panels
from onebasin.analysis.figures.trace_rank import plot_trace_rank
from onebasin.analysis.report import FigureItem

from .measures import RAW, Measured, Results, worst
from .recovery import Recovery
from .statements import GOOD, where


def rhat_figure(results: Results) -> FigureItem | None:
    """Draw how far R-hat is above 1, raw, aligned, held out and of invariants."""
    groups: dict[str, dict[str, float]] = {}
    for cell, found in results.measured.items():
        values = {
            "raw": worst(found.raw)["rhat"],
            "aligned": worst(found.aligned)["rhat"],
            "held out": found.held_out_rhat,
            "invariants": worst(found.modulo.invariants)["rhat"],
        }
        for name, value in values.items():
            groups.setdefault(name, {})[where(cell)] = value - 1
    if not groups:
        return None
    return FigureItem(
        plot_cells(groups, x_label="largest R-hat, less 1", limit=GOOD - 1, log_scale=True),
        caption=f"The worst R-hat of every posterior, less 1, on a logarithmic axis; the dashed line is {GOOD:g}.",
        alt="Dot plot of R-hat less 1, raw, aligned, held out and of invariants, for every posterior",
    )


def trace_figure(name: str, found: Measured) -> FigureItem:
    """Draw the worst parameter of a posterior, raw and aligned."""
    parameter = found.traces[0].name.removesuffix(RAW)
    return FigureItem(
        plot_trace_rank(found.traces),
        caption=f"{name}: the parameter whose raw R-hat is largest, `{parameter}`, as it came (above) and "
        "aligned (below). Left the trace, right how each chain's draws rank among all; where the chains "
        "agree, every histogram lies near the dashed line.",
        alt=f"Traces and rank histograms of {parameter} of {name}, raw and aligned",
    )


def rates_figure(rates: FailureRates) -> FigureItem:
    """Draw how often either rule gets labels wrong, by how far parts are apart."""
    return FigureItem(
        plot_failure_rates(rates),
        caption="Share of draws whose labels come out wrong, over how far neighbouring parts are apart in the standard "
        "deviations of a part's draws; whiskers from the least to the largest of several posteriors. The dashed "
        "line is what a rule could do that knows what was planted.",
        alt="Failure rates of the rules of alignment, and of the best rule, against the separation of the parts",
    )


def recovery_figure(results: Results) -> FigureItem | None:
    """Draw aligned posteriors against the truth, a panel a posterior."""
    found = {where(cell): m.recovery for cell, m in results.measured.items() if m.recovery}
    if not found:
        return None
    return FigureItem(
        plot_recovery(found),
        caption="Every entry's true value, in the labelling that fits best, against its aligned posterior: mean "
        "and 95 % interval. On the dashed line they are equal.",
        alt=f"Aligned posterior means with intervals against the truth, for {', '.join(found)}",
    )


def plot_recovery(found: Mapping[str, Recovery]) -> Figure:
    """Draw posterior means and 95 % intervals against true values, a panel each.

    Parameters
    ----------
    found : mapping
        Title of the panel to what is drawn in it.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not found:
        raise ValueError("`found` is empty: give the recovery of at least one posterior.")
    figure, panels = new_panels(
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
        axes.plot(ends, ends, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.vlines(gap.truth, gap.low, gap.high, color=ACCENT, linewidth=0.8, alpha=0.6)
        axes.plot(gap.truth, gap.mean, "o", color=INK, markersize=2.5)
    return figure
