"""Figures that several studies have: one number per run, traces of the worst chains, ELBOs."""

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots import style
from onebasin.analysis.plots.traces import draw_traces, traces_in_words
from onebasin.analysis.report.sections.fits import elbo_figure
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

from .cells import ENGINE_WORDS, METHOD_WORDS, Cell, Outcomes
from .frame import Frame, Row

WORST_TRACED = 3
_USUAL = "sigma"
"""A parameter that is traced whether or not it is among the worst."""
_FAMILIES = {"meanfield": "mean-field", "fullrank": "full-rank"}


def worst_chains(cells: Frame) -> Row | None:
    """Find the cell of NUTS with the largest R-hat of a parameter; None where none is known."""
    sampled = cells.known("rhat_value").where(method="nuts")
    return max(sampled, key=lambda row: row["rhat_value"], default=None)


def worst_trace(outcomes: Outcomes, cells: Frame) -> FigureItem | None:
    """Draw traces and ranks of the cell with the largest R-hat of a parameter."""
    worst = worst_chains(cells)
    if worst is None:
        return None
    (cell,) = (cell for cell in outcomes if cell.key == worst["key"])
    view, diagnosis = as_view(outcomes.tree(cell)), outcomes.diagnosis(cell)
    draws = view.draws()
    varying = diagnosis.parameters.drop(index=list(diagnosis.constants))
    order = ["rhat", "ess_bulk"]
    worst_first = varying.sort_values(order, ascending=[False, True], na_position="last")
    names = list(worst_first.index[:WORST_TRACED])
    names += [_USUAL] if _USUAL in draws.names and _USUAL not in names else []
    quantities = {name: draws.of(name) for name in names}
    lp = view.stat(schema.LP)
    if lp is not None and np.isfinite(lp).all():
        quantities = {schema.LP: lp, **quantities}
    listed = ", ".join(f"`{name}`" for name in quantities)
    return FigureItem(
        draw_traces(quantities),
        caption=f"Left, traces of {listed}; right, how each chain's draws rank among all draws. "
        "Where the chains agree, every chain's histogram lies near the dashed line.",
        alt=traces_in_words(quantities),
    )


def elbo_traces(outcomes: Outcomes) -> tuple[FigureItem, ...]:
    """Draw the ELBO of every variational fit, one figure per engine."""
    items = []
    for engine in dict.fromkeys(cell.engine for cell in outcomes):
        fits = {
            f"{cell.problem}, {_FAMILIES[cell.method]}": outcomes.tree(cell)
            for cell in outcomes
            if cell.engine == engine and cell.method in _FAMILIES
        }
        item = elbo_figure(fits)
        if item is not None:
            caption = f"{ENGINE_WORDS[engine]}: {item.caption}"
            items.append(FigureItem(item.figure, caption, f"{item.alt}, {ENGINE_WORDS[engine]}"))
    return tuple(items)


def panels(
    outcomes: Outcomes, problems: tuple[str, ...], methods: tuple[str, ...]
) -> dict[str, Cell]:
    """Give a cell for each panel of a figure, of the first engine that has it, by its title."""
    cells: dict[tuple[str, str], Cell] = {}
    for cell in outcomes:
        cells.setdefault((cell.problem, cell.method), cell)
    names = [(problem, method) for problem in problems for method in methods]
    return {f"{p}, {METHOD_WORDS[m]}": cells[p, m] for p, m in names if (p, m) in cells}


def plot_cells(
    values: Mapping[str, Mapping[str, float]],
    *,
    x_label: str,
    limit: float | None = None,
    log_scale: bool = False,
) -> Figure:
    """Draw one dot per run, runs in rows and groups by colour; NaN where a run has no number.

    `x_label` says what the numbers are, with their unit; `limit` is a threshold to mark.
    """
    rows = list(dict.fromkeys(row for group in values.values() for row in group))
    figure = style.new_figure(7.2, 0.34 * len(rows) + 1.2)
    axes = style.style_axes(figure.subplots(), x_label=x_label)
    markers = "osD^vP"
    handles = [
        axes.plot(
            [group.get(row, math.nan) for row in rows],
            range(len(rows)),
            linestyle="none",
            marker=markers[place % len(markers)],
            markersize=6.5,
            color=(style.ACCENT, *style.CHAIN_COLOURS[1:])[place % len(style.CHAIN_COLOURS)],
        )[0]
        for place, group in enumerate(values.values())
    ]
    if limit is not None:
        axes.axvline(limit, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)))
    if log_scale:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(rows)), rows, fontsize=style.TEXT_SIZE, color=style.INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="both", color=style.GRID, linewidth=0.6)
    if len(values) > 1:
        style.add_legend(figure, handles, list(values))
    return figure
