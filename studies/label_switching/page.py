"""The study's page: tables, words and pictures."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.page.page import FigureItem, Note
from onebasin.analysis.plots.traces import draw_traces
from onebasin.analysis.report.definitions import DIAGNOSTICS as DIAGNOSTIC_TERMS
from onebasin.base.table import Table, TableCell
from onebasin.posteriors.view import as_view
from onebasin.truth.alignment_failures import RULES, FailureRates, PlantedComponents
from onebasin.truth.alignment_recovery import Recovery, recover
from onebasin.truth.figures import draw_failure_rates, plot_recovery
from onebasin.truth.problems.label_switching import PROBLEMS, simulate

from .. import lab
from ..lab import Chapter, Field, Frames, Row, RowTable, at_most
from ..lab.figures import plot_cells
from . import design, measures
from .design import LabelSwitchingConfig
from .measures import APART, GOOD, HELD_OUT, LARGEST_SDS, RMS_SDS, least_ess, spread


def _ess(column: str) -> Callable[[Row], TableCell | None]:
    """Flag effective draws by how many a posterior of so many chains must have."""

    def cell(row: Row) -> TableCell | None:
        value = row[column]
        return None if value is None else TableCell(value, lab.at_least(least_ess(row))(value))

    return cell


def _rhat(column: str, unit: str, limit: float = GOOD) -> Field:
    return Field("R-hat", column, decimals=3, unit=unit, flag=at_most(limit))


def _distance(column: str, unit: str, limit: float, entry: str = "") -> Field:
    note = (lambda row: f"`{row[entry]}`") if entry else None
    return Field("distance", column, decimals=2, unit=unit, flag=at_most(limit), note=note)


DIAGNOSTICS = RowTable(
    "The worst parameter that the symmetry moves, raw and aligned; chains aligned with a reference that they had "
    "no part in; and the worst quantity that the symmetry leaves alone",
    (
        Field("posterior", "label"),
        _rhat("raw_rhat", "raw"),
        _rhat("aligned_rhat", "aligned"),
        _rhat("held_out_rhat", "held out", HELD_OUT),
        _rhat("invariant_rhat", "invariants"),
        *(
            Field(f"{kind} ESS", _ess(f"{state}_ess_{kind}"), decimals=0, unit=unit)
            for kind, state, unit in (
                ("bulk", "raw", "raw"),
                ("bulk", "aligned", "aligned"),
                ("tail", "raw", "raw"),
                ("tail", "aligned", "aligned"),
                ("bulk", "invariant", "invariants"),
            )
        ),
    ),
)

SWITCHING = RowTable(
    "What alignment found. Basins: groups of chains that agree after it. Shuffled parts are the yardstick for what "
    "alignment gains on noise. Before sampling the declared symmetry is tried on the log density at random points",
    (
        Field("posterior", "label"),
        Field("labellings", "labellings_in_all", unit="in all"),
        Field("basins", lambda row: len(row["basins"]), unit="left", flag=at_most(1)),
        Field(
            "labellings", lambda row: spread(row["labellings_by_mean"]), unit="a chain, by the mean"
        ),
        Field("labellings", lambda row: spread(row["labellings"]), unit="a chain, by a Gaussian"),
        Field("sd", "sd_ratio", decimals=2, unit="aligned over raw"),
        Field("variance", "variance_ratio", decimals=2, unit="aligned over relabelled"),
        Field("variance", "noise_ratio", decimals=2, unit="the same, shuffled parts"),
        Field("log density", "symmetry_check", digits=1, unit="largest change by the symmetry"),
    ),
)

RECOVERY = RowTable(
    "Aligned posterior means against the truth that made the data, matched by the group, in posterior sds; and by "
    "how much the mean leaves a posterior wider than the Gaussian does",
    (
        Field("posterior", "label"),
        Field("entries", "entries"),
        _distance("rms_sds", "rms, by a Gaussian", RMS_SDS),
        _distance("largest_sds", "largest, by a Gaussian", LARGEST_SDS, "largest_entry"),
        Field("inside", "inside_95", decimals=2, unit="95 % intervals"),
        _distance("mean_rms_sds", "rms, by the mean", RMS_SDS),
        _distance("mean_largest_sds", "largest, by the mean", LARGEST_SDS, "mean_largest_entry"),
        Field("sd", "inflation", decimals=2, unit="by the mean over by a Gaussian, largest"),
    ),
)


def rates(frames: Frames) -> Table:
    """Tabulate failure rates, one separation a row, means over the posteriors."""
    first = frames["rates"].rows[0]
    rules = {"optimal": "best possible", **RULES}
    view = RowTable(
        f"Share of draws whose labels come out wrong; {first['components']} parts of {first['features']} features "
        f"each, {len(first['optimal'])} posteriors of {first['draws']} draws",
        (
            Field("separation", "separation", unit="sds"),
            *(Field(rules[rule], lab.mean_of(rule), decimals=3) for rule in rules if rule in first),
        ),
        over="rates",
    )
    return view(frames)


VIEWS = (DIAGNOSTICS, lab.CLAIMS, SWITCHING, RECOVERY, rates, lab.TRIALS, lab.FAILURES)


_DEFINITIONS = (
    (
        "Raw, aligned, held out",
        "Raw: the draws as the sampler gave them. Aligned: every draw moved by the relabelling that brings it "
        "closest to a diagonal Gaussian fitted to the aligned draws, iterated. Held out: the reference is fitted on "
        "the first half of the chains, and the R-hat is that of the other half.",
    ),
    (
        "By the mean, by a Gaussian",
        "The distance to the reference. By the mean: squared, each variable divided by its spread over all raw "
        "draws. By a Gaussian: each entry divided by its spread over the aligned draws (Stephens 2000), so that "
        "entries that are known well decide.",
    ),
    (
        "Invariants",
        "Quantities that no relabelling changes: the log density, means and mean squares over the parts, and a "
        "network's outputs.",
    ),
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    apart = APART(frames)
    if apart:
        raw = apart.column("raw_rhat")
        left = [row for row in apart if row["aligned_rhat"] > GOOD]
        names = ", ".join(f"{row['label']} ({row['aligned_rhat']:.3f})" for row in left)
        yield (
            f"Where the parts are apart, the worst R-hat is {min(raw):.2f} to {max(raw):.2f} raw, and aligned at "
            f"most {GOOD:g} in {len(apart) - len(left)} of {len(apart)} posteriors; their smallest bulk ESS goes from "
            f"{min(apart.column('raw_ess_bulk')):.0f} to {min(apart.column('aligned_ess_bulk')):.0f}."
            + (f" Not in {names}." if left else "")
        )
        mean, gaussian = (
            sum(max(row[rule]) > 1 for row in apart)
            for rule in ("labellings_by_mean", "labellings")
        )
        yield (
            f"Aligned with the mean, {mean} of these {len(apart)} seem to change labels within chains, which leaves "
            f"posteriors up to {max(apart.column('inflation')):.1f} times as wide; aligned with a Gaussian, {gaussian}."
        )
    for row in lab.select("cells", kind="overlap")(frames).rows[:1]:
        warned = "warns" if row["warnings"] else "does not warn"
        yield (
            f"Where they overlap, chains go through up to {max(row['labellings'])} labellings each, raw R-hat is "
            f"{row['raw_rhat']:.2f}, and the diagnosis {warned} that aligned means depend on the rule."
        )
    for row in lab.select("cells", kind="modes")(frames).rows[:1]:
        yield (
            f"Where modes differ in more than labels, R-hat is {row['raw_rhat']:.2f} raw and "
            f"{row['aligned_rhat']:.2f} aligned, and the chains are told apart as {len(row['basins'])} groups."
        )
    yield lab.count_verdicts(frames, of="claims", hold=("holds", "hold"))


def chapters(
    config: LabelSwitchingConfig, outcomes: lab.Outcomes, frames: Frames
) -> Iterator[Chapter | None]:
    """Lay out the page; every posterior is aligned once more."""
    aligned = {cell: align(outcomes.tree(cell)) for cell in outcomes}
    titles = {row["key"]: row["label"] for row in frames["cells"]}
    recovered = {
        titles[cell.key]: recover(found.posterior, truth, found.symmetry)
        for cell, found in aligned.items()
        if (truth := simulate(cell.problem, config.seed).truth)
    }
    yield Chapter(
        "The question",
        "Where a model's parts are interchangeable, every mode has copies under other labels, and chains "
        "that found different copies look as if they had not converged. Can diagnostics tell this from chains "
        "that have really not converged, once the relabelling is divided out?\n\n"
        "The models below have such parts. Their data are synthetic, so that the truth is known, and NUTS is "
        "told nothing of labels: no order, no start near a mode. In one the parts overlap, and one has modes "
        "that differ in more than labels: alignment must not fix that.",
    )
    drawn = rhat_figure(frames["cells"])
    yield Chapter("Raw and aligned", views=(DIAGNOSTICS,), extras=(drawn,))
    yield Chapter("What is claimed, and what was measured", views=(lab.CLAIMS,))
    yield Chapter(
        "Basins and labels",
        "Two rules of alignment are compared. They differ where a part has entries that the data say "
        "little of: by the mean these count as much as the others, and may carry a draw to another label.",
        views=(SWITCHING,),
    )
    yield Chapter(
        "Is it the truth?",
        "Distances are in posterior standard deviations. A posterior that a rule of alignment leaves too wide "
        "looks close to the truth by them, so that the last column belongs next to them.",
        (RECOVERY,),
        (recovery_figure(recovered),),
    )
    yield Chapter(
        "How far apart is apart?",
        "Of real posteriors nobody knows which labels are right. So parts are drawn whose labels are known, "
        "hidden, and looked for again by every rule.",
        (rates,),
        (rates_figure(frames["rates"]),),
    )
    for cell, found in aligned.items():
        row = frames["cells"].row(key=cell.key)
        yield _model(row, trace_figure(row, outcomes.tree(cell), found.posterior))
    captions = ("Health of the chains, raw", "Cost, ESS raw")
    yield Chapter(
        "Can the draws be trusted?",
        "The usual health of the chains, before alignment: R-hat and ESS condemn them all.",
        extras=lab.health(
            outcomes, outcomes, name=lambda c: lab.where(c.factors), captions=captions
        ),
    )
    yield Chapter("Every comparison", views=(lab.TRIALS,))
    yield lab.failed(frames)


def _model(row: Row, drawn: FigureItem) -> Chapter:
    """Show one posterior: what it is, what the diagnosis says of it, and its worst parameter."""
    remarks = (
        *(Note(sentence) for sentence in row["sentences"][1:]),  # the first says the rule
        *(Note(warning, "warn") for warning in row["warnings"]),
    )
    title = row["label"][0].upper() + row["label"][1:]
    return Chapter(title, PROBLEMS[row["problem"]].words, extras=(*remarks, drawn))


def rhat_figure(cells: lab.Frame) -> FigureItem | None:
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


def trace_figure(row: Row, raw: xr.DataTree, aligned: xr.DataTree) -> FigureItem:
    """Draw the worst parameter of a posterior, raw and aligned."""
    name, parameter = row["label"], row["raw_parameter"]
    before, after = (as_view(tree).draws().of(parameter) for tree in (raw, aligned))
    return FigureItem(
        draw_traces({f"{parameter}, raw": before, f"{parameter}, aligned": after}),
        caption=f"{name}: the parameter whose raw R-hat is largest, `{parameter}`, as it came (above) and "
        "aligned (below). Left the trace, right how each chain's draws rank among all; where the chains "
        "agree, every histogram lies near the dashed line.",
        alt=f"Traces and rank histograms of {parameter} of {name}, raw and aligned",
    )


def rates_figure(rates: lab.Frame) -> FigureItem:
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


STUDY = lab.Study(
    design.configure, design.cells, design.target, measures.measure, measures.CLAIMS, VIEWS,
    "Label switching: diagnostics raw and aligned",
    headline, chapters, _DEFINITIONS + DIAGNOSTIC_TERMS,
    shown=(DIAGNOSTICS, lab.CLAIM_VERDICTS),
    make=design.make,
)  # fmt: skip
