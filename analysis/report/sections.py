"""Report sections on parameters, labels and modes of one posterior, and on several posteriors.

Functions return None instead of a section if there is nothing to show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from onebasin.base.table import Column, Row, Table, TableCell, format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.view import View

from ..diagnostics.verdict import FLAGS, Limits
from ..page import Details, FigureItem, Note, Part, Section
from ..plots.chains import draw_modes
from ..plots.labels import draw_aligned
from ..plots.marginals import density, draw_curves, draw_forest, intervals_in_words
from ..plots.posteriors import Subject, listed, thinned
from ..plots.style import CHAIN_COLOURS
from ..summaries.sampler import MATTERS, ModesSummary, modes_of, share
from ..summaries.summary import COLUMNS
from .chains import elbo_figure, traces
from .predictions import bands
from .tables import comparison_table, grouped_table, health_table, means_table, quantity_table

if TYPE_CHECKING:
    from onebasin.models.symmetry.blocks import Symmetry

    from ..compare.comparable import CommonFrame
    from ..diagnostics.result import Diagnosis

IN_FOREST = 24
"""Largest number of parameters in the forest plot."""
DRAWS = 2000
"""Largest number of draws per chain used to compute intervals."""

_KINDS = {
    "parameter": "Parameters",
    "transformed": "Transformed parameters",
    "generated": "Generated quantities",
}


def parameters(subject: Subject) -> Section:
    """Tabulate all parameters by variable, and plot intervals of the first ones."""
    parts: list[Part] = []
    diagnosis, table = subject.diagnosis, subject.diagnosis.shown
    constant = [name for name in diagnosis.constants if name in table.index]
    table = table.drop(index=constant)[[name for name in COLUMNS if name in table]]
    limits = diagnosis.limits
    marked = f" R-hat above {limits.rhat:g} and effective sample sizes below {diagnosis.min_ess:g} are marked."
    marked = marked if diagnosis.has_chains else ""
    if diagnosis.is_shown_aligned:
        names = tuple(dict.fromkeys(map(variable_of, sorted(subject.moved))))
        parts.append(f"{listed(names)}: see the table of aligned parameters above.")
        table = table.drop(index=[name for name in table.index if name in subject.moved])
    for kind, heading in _KINDS.items():
        chosen = [
            n for n in table.index if diagnosis.kinds.of.get(variable_of(n), "parameter") == kind
        ]
        if not chosen:
            continue
        caption = f"{heading}: {format_number(len(chosen))}.{marked}"
        tabulated = grouped_table(diagnosis, table.loc[chosen], caption=caption)
        if kind == "parameter":
            parts.append(tabulated)
        else:
            count = f"{format_number(len(chosen))}, not used for the verdict"
            parts.append(Details(heading, (tabulated,), note=count))
    decisive = set(subject.worst)
    first = [n for n in map(str, diagnosis.shown.index) if n in decisive][:IN_FOREST]
    quantities = {n: thinned(v, DRAWS) for n, v in subject.several(first).items()}
    if quantities:
        rows = diagnosis.shown.loc[list(quantities)]
        ends = (rows[column].tolist() for column in ("q5", "median", "q95"))
        shown, of = len(quantities), len(decisive)
        which = "All" if shown == of else f"The first {shown} of {of}"
        aligned = " The draws are aligned." if diagnosis.is_shown_aligned else ""
        parts.append(
            FigureItem(
                draw_forest({subject.name: quantities}),
                caption=f"{which} parameters: medians (points) and central 50 % and 90 % intervals (lines).{aligned}",
                alt=intervals_in_words(list(quantities), *ends),
            )
        )
    return Section("Parameters", parts=tuple(parts))


INVARIANTS = 12


def labels(subject: Subject) -> Section | None:
    """Show a posterior before and after alignment. Return None if there is no symmetry."""
    aligned = subject.diagnosis.aligned
    if aligned is None or subject.aligned_draws is None:
        return None
    # Joined modes have one labelling each, so aligning the draws again would mix modes.
    if subject.verdict.answer == "usable" and modes_of(subject.view) is not None:
        return None
    rule, *happened = aligned.sentences
    parts: list[Part] = [" ".join(happened)]
    if aligned.caveat:
        parts.append(Note(aligned.caveat))
    parts += [Note(text, "warn") for text in aligned.warnings]
    figure, told = draw_aligned(aligned.alignment)
    caption = "Draws as sampled (left) and aligned (right), chain after chain, with one colour for each component."
    parts.append(FigureItem(figure, caption, told))
    caption = (
        "Aligned parameters. R-hat is shown before and after alignment; all other columns are of aligned "
        "draws."
    )
    table, raw = aligned.aligned.parameters, aligned.raw.parameters
    parts.append(grouped_table(subject.diagnosis, table, raw=raw, caption=caption))
    if len(aligned.invariants):
        free = aligned.invariants.sort_values("rhat", ascending=False, na_position="last")
        caption = "Label-free quantities: label switching does not affect them."
        quantities = quantity_table(subject.diagnosis, free.head(INVARIANTS), caption=caption)
        count = f"the {INVARIANTS} worst of {format_number(len(free))} quantities"
        summary = f"Label-free quantities: {count}"
        parts.append(
            Details(summary, (quantities,), open=True) if len(free) > INVARIANTS else quantities
        )
    parts.append(Details("How draws were aligned", (rule,)))
    return Section("Labels before and after alignment", parts=tuple(parts))


DRAWN = 4000
"""Largest number of points to plot."""
LOOKED_AT, CANDIDATES = 500, 40
"""Number of parameters for which the separation of modes is computed, and number of these tried in pairs."""
SMALL = math.log(1e-4)
"""Log weight below which a weight is written as a power of ten."""


def modes(subject: Subject) -> Section | None:
    """Show the modes of a joined posterior. Return None for other posteriors."""
    found = modes_of(subject.view)
    if found is None:
        return None
    text = f"{found.sentence} {found.remark}".strip()
    columns = (
        "mode",
        "weight",
        "95 % interval",
        Column("log evidence", decimals=2, unit="nats"),
        Column("± error", decimals=2, unit="nats"),
        "starts",
        Column("R-hat", decimals=3, limits=(Limits.rhat, Limits.DECIDES)),
        Column("strays", unit="share"),
        "divergences",
    )
    table = Table(
        columns,
        tuple(_row(found, number) for number in range(found.count)),
        caption="Modes, the heaviest first. Log evidence: of a mode with all its copies under the "
        f"symmetry. Starts: the number of the {found.starts} starts that led to the mode. R-hat: the largest between "
        "the mode's chains. Strays: the share of their draws in other modes.",
    ).without_empty_columns()
    figure = _figure(subject, found)
    return Section("Modes", text=text, parts=(table, *([figure] if figure else [])))


def _row(found: ModesSummary, number: int) -> Row:
    def of(name: str) -> float | None:
        values = found.table.get(name)
        return None if values is None else float(values.values[number])

    def count(name: str) -> int | None:
        value = of(name)
        return None if value is None else int(value)

    rhat, high, divergences = of("rhat"), of("weight_high"), count("divergences")
    matters = high is None or not found.known or high >= MATTERS
    judged = Limits().outcome("rhat", math.nan if rhat is None else rhat, decides=matters)
    return (
        str(number),
        _weight(found, number) if found.known else TableCell("not known", "bad"),
        " to ".join(map(format_number, (of("weight_low"), high))) if found.known else None,
        of("log_evidence"),
        of("log_evidence_error"),
        count("starts"),
        TableCell(rhat, FLAGS[judged] if judged in ("warned", "failed") else ""),
        of("strays"),
        TableCell(divergences, "warn" if divergences else ""),
    )


def _weight(found: ModesSummary, number: int) -> str:
    """Write a weight with three digits, or as a power of ten if it is tiny."""
    log_weight = float(found.table["log_weight"][number])
    return format_number(math.exp(log_weight)) if log_weight > SMALL else share(log_weight)


def _figure(subject: Subject, found: ModesSummary) -> FigureItem | None:
    """Plot the two parameters that separate the modes best. Return None if all draws are in one mode."""
    of = subject.view.stat(schema.MODE)
    if of is None or len(np.unique(of)) < 2:
        return None
    quantities = subject.several(subject.worst[:LOOKED_AT])
    # Compute squared distances between the means of two modes, divided by the mean variance of modes.
    apart = {}
    for name, values in quantities.items():
        parts = [values[of == k] for k in np.unique(of)]
        means = np.array([part.mean() for part in parts])
        within = float(np.mean([part.var() for part in parts]))
        one, other = np.triu_indices(len(means), 1)
        squares = (means[one] - means[other]) ** 2
        apart[name] = squares / within if within > 0 else np.zeros(len(squares))
    likely = sorted(apart, key=lambda name: -float(apart[name].sum()))[:CANDIDATES]
    if len(likely) < 2:
        return None
    # The best pair of parameters has the largest distance between the two closest modes.
    x, y = max(combinations(likely, 2), key=lambda pair: (apart[pair[0]] + apart[pair[1]]).min())
    first, second = quantities[x], quantities[y]
    step = -(-of.size // DRAWN)
    drawn = np.stack([first.ravel(), second.ravel()], axis=1)[::step]
    numbers = of.ravel()[::step].astype(int)
    points, told = {}, []
    for k in np.unique(numbers).tolist():
        name = f"mode {k}, weight {_weight(found, k)}" if found.known else f"mode {k}"
        points[name] = drawn[numbers == k]
        (a, c), (b, d) = points[name].mean(axis=0), points[name].std(axis=0)
        a, b, c, d = (format_number(float(value)) for value in (a, b, c, d))
        told.append(f"{name}: {x} {a} ± {b}, {y} {c} ± {d}")
    counted = "; modes have draws in proportion to their weights" if found.known else ""
    return FigureItem(
        draw_modes(points, x_label=x, y_label=y),
        caption=f"`{x}` and `{y}`, which separate the modes best, with one colour for each mode{counted}.",
        alt=f"{'; '.join(told)}.",
    )


OVERLAID = 8
"""Number of parameters whose densities are plotted."""
MOST_POSTERIORS = len(CHAIN_COLOURS)
DENSITY_DRAWS = 2000
"""Largest number of draws per chain used to estimate a density."""


def several(
    subjects: Sequence[Subject],
    *,
    truth: str,
    symmetry: Symmetry | None = None,
    var_names: Sequence[str] | None = None,
) -> tuple[Section | None, ...]:
    """Compare two or more posteriors with one of them, `truth`.

    By default, use the symmetry declared by the truth and compare all variables.
    """
    views = {subject.name: subject.view for subject in subjects}
    diagnoses = {subject.name: subject.diagnosis for subject in subjects}
    beside = _compared(views, diagnoses, truth, symmetry, var_names)
    aligned = [subject.name for subject in subjects if subject.diagnosis.is_shown_aligned]
    after = f" Aligned draws are judged for {listed(aligned)}." if aligned else ""
    health = health_table(
        diagnoses, caption=f"Checks of the draws.{after} A dash means that a check does not apply."
    )
    item = elbo_figure(views)
    optimisation = None if item is None else Section("Optimisation", figures=(item,))
    return (beside, Section("Checks", parts=(health,)), optimisation)


def one_of_several(subject: Subject) -> Section:
    """Tabulate the parameters of one of several posteriors, and show traces of the worst parameters."""
    diagnosis = subject.diagnosis
    parts: list[Part] = [
        Note(text, check.flag)
        for check in diagnosis.checks
        if check.outcome in ("warned", "failed")
        for text in check.sentences
    ]
    shown = diagnosis.shown
    table = shown.drop(index=[name for name in diagnosis.constants if name in shown.index])
    caption = f"R-hat above {diagnosis.limits.rhat:g} and low ESS are marked."
    aligned = ", aligned where the symmetry moves them" if diagnosis.is_shown_aligned else ""
    count = f"{format_number(len(table))}{aligned}"
    parts.append(
        Details("Parameters", (grouped_table(diagnosis, table, caption=caption),), note=count)
    )
    if (item := traces(subject)) is not None:
        parts.append(item)
    return Section(subject.name, parts=tuple(parts))


def _compared(
    views: Mapping[str, View],
    diagnoses: Mapping[str, Diagnosis],
    truth: str,
    symmetry: Symmetry | None,
    var_names: Sequence[str] | None,
) -> Section:
    from ..compare.compare import compare  # Imported late, because it loads JAX.

    title = f"Compared with {truth}"
    try:
        comparison = compare(
            views, truth=truth, symmetry=symmetry, var_names=var_names, diagnoses=diagnoses
        )
    except ValueError as error:
        return Section(title, notes=(Note(f"The posteriors are not comparable: {error}", "warn"),))
    parts: list[Part] = [*comparison.sentences]
    parts += [Note(text, "warn") for text in comparison.warnings]
    parts.append(comparison_table(comparison))
    if (means := means_table(comparison)) is not None:
        parts.append(means)
    for item in (marginals(views, truth, comparison.frame), bands(views)):
        if item is not None:
            parts.append(item)
    parts.append("\n\n".join(comparison.notes))
    return Section(title, parts=tuple(parts))


def marginals(
    views: Mapping[str, View], truth: str, frame: CommonFrame | None
) -> FigureItem | None:
    """Plot densities of the parameters whose medians differ most, in a common labelling."""
    if frame is None:
        return None
    chosen = {truth: views[truth]} | dict(views)
    draws = {}
    for name, view in chosen.items():
        try:
            draws[name] = frame.align(view).draws(tuple(frame.shapes), finite=False)
        except ValueError:
            continue  # The comparison already reports this.
    shown = dict(list(draws.items())[:MOST_POSTERIORS])
    if len(shown) < 2:
        return None
    places = {name: _spreads(each) for name, each in shown.items()}
    common = [n for n in places[truth] if all(n in each for each in places.values())]
    apart = {}
    for name in common:
        middles, spreads = zip(*(each[name] for each in places.values()), strict=True)
        apart[name] = float(np.ptp(middles) / min(spreads))
    worst = set(sorted(apart, key=lambda name: -apart[name])[:OVERLAID])
    names = [name for name in common if name in worst]
    if not names:
        return None
    quantities = {
        name: {n: thinned(each.of(n), DENSITY_DRAWS) for n in names} for name, each in shown.items()
    }
    panels = {n: [density(each[n]) for each in quantities.values()] for n in names}
    figure = draw_curves(panels, tuple(quantities), height=1.7)
    total, labels = len(common), "" if frame.alignment is None else ", in a common labelling"
    which = "All" if len(names) == total else f"The {len(names)} of {total} that differ most"
    told = []
    for name in names:
        lies = []
        for posterior, each in quantities.items():
            ends = np.quantile(each[name], [0.05, 0.5, 0.95])
            low, middle, high = (format_number(float(q)) for q in ends)
            lies.append(f"{posterior} {middle} ({low} to {high})")
        told.append(f"{name}, medians and 90 % intervals: {'; '.join(lies)}.")
    return FigureItem(
        figure,
        caption=f"Marginal densities{labels}. {which}: {listed(names, most=OVERLAID)}.",
        alt=" ".join(told),
    )


def _spreads(draws) -> dict[str, tuple[float, float]]:
    """Return the median and spread of every parameter that varies."""
    places: dict[str, tuple[float, float]] = {}
    for part, values in zip(draws.parts(), draws.blocks(), strict=True):
        flat = values.reshape(-1, values.shape[2])
        low, middle, high = np.quantile(flat, [0.16, 0.5, 0.84], axis=0)
        for name, centre, spread in zip(draws.names[part], middle, high - low, strict=True):
            if np.isfinite(spread) and spread > 0:
                places[name] = (float(centre), float(spread))
    return places
