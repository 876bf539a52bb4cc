"""The study's figures, by the chapters that show them."""

from collections.abc import Iterable, Mapping

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots.traces import TraceRank, draw_traces, trace_rank
from onebasin.posteriors.view import as_view
from onebasin.truth.alignment_failures import RULES, FailureRates, PlantedComponents
from onebasin.truth.alignment_recovery import Recovery, recover
from onebasin.truth.plot_failure_rates import draw_failure_rates
from onebasin.truth.problems.label_switching import simulate
from onebasin.truth.recovery_figure import plot_recovery

from ..lab import Frame, Frames, Outcomes, Row, health
from ..lab.cells_figure import plot_cells
from ..lab.page import Extra
from .claims import GOOD
from .design import Config
from .measures import where
from .text import HEALTH, OVERLAP, RAW_AND_ALIGNED, TRUTH, model_title


def figures(config: Config, outcomes: Outcomes, frames: Frames) -> Mapping[str, Iterable[Extra]]:
    """Draw what the chapters show; every posterior is aligned once more."""
    traces, recovered = {}, {}
    for cell in outcomes:
        (row,) = frames["cells"].where(key=cell.key)
        tree = outcomes.tree(cell)
        alignment = align(tree)
        traces[model_title(row)] = [trace_figure(row, tree, alignment.posterior)]
        if truth := simulate(cell.problem, config.seed).truth:
            recovered[row["label"]] = recover(alignment.posterior, truth, alignment.symmetry)
    captions = ("Health of the chains, raw", "Cost, ESS raw")
    return {
        RAW_AND_ALIGNED: [rhat_figure(frames["cells"])],
        TRUTH: [recovery_figure(recovered)],
        OVERLAP: [rates_figure(frames["rates"])],
        **traces,
        HEALTH: health(outcomes, outcomes, name=where, captions=captions),
    }


def rhat_figure(cells: Frame) -> FigureItem | None:
    """Draw how far R-hat is above 1, raw, aligned, held out and of invariants."""
    columns = {
        "raw": "raw_rhat",
        "aligned": "aligned_rhat",
        "held out": "held_out_rhat",
        "invariants": "invariant_rhat",
    }
    groups = {
        name: {row["label"]: (np.nan if row[column] is None else row[column]) - 1 for row in cells}
        for name, column in columns.items()
    }
    if not cells:
        return None
    return FigureItem(
        plot_cells(groups, x_label="largest R-hat, less 1", limit=GOOD - 1, log_scale=True),
        caption=f"The worst R-hat of every posterior, less 1, on a logarithmic axis; the dashed line is {GOOD:g}.",
        alt="Dot plot of R-hat less 1, raw, aligned, held out and of invariants, for every posterior",
    )


def worst_traces(row: Row, raw: xr.DataTree, aligned: xr.DataTree) -> tuple[TraceRank, TraceRank]:
    """Take the parameter whose raw R-hat is largest, raw and aligned."""
    parameter = row["raw_parameter"]
    before, after = (as_view(tree).draws().of(parameter) for tree in (raw, aligned))
    return trace_rank(f"{parameter}, raw", before), trace_rank(f"{parameter}, aligned", after)


def trace_figure(row: Row, raw: xr.DataTree, aligned: xr.DataTree) -> FigureItem:
    """Draw the worst parameter of a posterior, raw and aligned."""
    name, parameter = row["label"], row["raw_parameter"]
    return FigureItem(
        draw_traces(worst_traces(row, raw, aligned)),
        caption=f"{name}: the parameter whose raw R-hat is largest, `{parameter}`, as it came (above) and "
        "aligned (below). Left the trace, right how each chain's draws rank among all; where the chains "
        "agree, every histogram lies near the dashed line.",
        alt=f"Traces and rank histograms of {parameter} of {name}, raw and aligned",
    )


def rates_figure(rates: Frame) -> FigureItem:
    """Draw how often either rule gets labels wrong, by how far parts are apart."""
    first, separations = rates.rows[0], np.array(rates.column("separation"))
    optimal, *found = (np.array(rates.column(rule)).T for rule in ("optimal", *RULES))
    planted = PlantedComponents(first["components"], first["features"], repeats=len(optimal))
    drawn = FailureRates(planted, separations, dict(zip(RULES, found, strict=True)), optimal)
    return FigureItem(
        draw_failure_rates(drawn),
        caption="Share of draws whose labels come out wrong, over how far neighbouring parts are apart in the standard "
        "deviations of a part's draws; whiskers from the least to the largest of several posteriors. The dashed "
        "line is what a rule could do that knows what was planted.",
        alt="Failure rates of the rules of alignment, and of the best rule, against the separation of the parts",
    )


def recovery_figure(found: Mapping[str, Recovery]) -> FigureItem | None:
    """Draw aligned posteriors against the truth, a panel a posterior."""
    if not found:
        return None
    return FigureItem(
        plot_recovery(found),
        caption="Every entry's true value, in the labelling that fits best, against its aligned posterior: mean "
        "and 95 % interval. On the dashed line they are equal.",
        alt=f"Aligned posterior means with intervals against the truth, for {', '.join(found)}",
    )
