"""Parameters by variable and where they lie, labels before and after alignment, and modes with their weights."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from onebasin.base.table import Column, Row, Table, TableCell, format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import variable_of

from ...diagnostics.verdict import FLAGS, Limits
from ...page.page import Details, FigureItem, Note, Part, Section
from ...plots.labels import draw_aligned
from ...plots.marginals import draw_forest, intervals_in_words
from ...plots.pairs import draw_modes
from ...plots.posteriors import Subject, listed, thinned
from ...summaries.modes import MATTERS, ModesSummary, modes_of, share
from ...summaries.summary import COLUMNS
from ..tables import grouped_table, quantity_table

IN_FOREST = 24
"""Parameters that the forest shows at most."""
DRAWS = 2000
"""Draws of a chain that intervals are made of at most."""

_KINDS = {
    "parameter": "Parameters",
    "transformed": "Transformed parameters",
    "generated": "Generated quantities",
}


def parameters(subject: Subject) -> Section:
    """Tabulate all parameters by variable, and draw where the first of them lie."""
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
        aligned = " They are aligned." if diagnosis.is_shown_aligned else ""
        parts.append(
            FigureItem(
                draw_forest({subject.name: quantities}),
                caption=f"{which} parameters: medians (points) and where 50 % and 90 % of draws lie (lines).{aligned}",
                alt=intervals_in_words(list(quantities), *ends),
            )
        )
    return Section("Parameters", parts=tuple(parts))


INVARIANTS = 12


def labels(subject: Subject) -> Section | None:
    """Show what alignment did to a posterior; None where there is no symmetry, or draws came in one labelling."""
    aligned = subject.diagnosis.aligned
    if aligned is None or subject.aligned_draws is None:
        return None
    # Draws that have the labelling of their mode may be used so: another rule would mix modes again.
    if subject.verdict.answer == "usable" and modes_of(subject.view) is not None:
        return None
    rule, *happened = aligned.sentences
    parts: list[Part] = [" ".join(happened)]
    if aligned.caveat:
        parts.append(Note(aligned.caveat))
    parts += [Note(text, "warn") for text in aligned.warnings]
    figure, told = draw_aligned(aligned.alignment)
    caption = "As sampled (left) and aligned (right), chain after chain, one colour a component."
    parts.append(FigureItem(figure, caption, told))
    caption = "Aligned parameters. R-hat stands before and after; medians and intervals are of aligned draws."
    table, raw = aligned.aligned.parameters, aligned.raw.parameters
    parts.append(grouped_table(subject.diagnosis, table, raw=raw, caption=caption))
    if len(aligned.invariants):
        free = aligned.invariants.sort_values("rhat", ascending=False, na_position="last")
        caption = "Label-free quantities: you can use them whatever the labels did."
        quantities = quantity_table(
            subject.diagnosis, free.head(INVARIANTS), heading="quantity", caption=caption
        )
        count = f"the {INVARIANTS} worst of {format_number(len(free))} quantities"
        summary = f"Label-free quantities: {count}"
        parts.append(
            Details(summary, (quantities,), open=True) if len(free) > INVARIANTS else quantities
        )
    parts.append(Details("How draws were aligned", (rule,)))
    return Section("Labels before and after alignment", parts=tuple(parts))


DRAWN = 4000
"""Draws that are drawn at most."""
LOOKED_AT, CANDIDATES = 500, 40
"""Parameters of which the separation of modes is computed, and those among which the best pair is looked for."""
SMALL = math.log(1e-4)
"""Log weight below which a weight is written as the power of ten."""


def modes(subject: Subject) -> Section | None:
    """Show the modes; None for a posterior that was not put together from any."""
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
        caption="Modes, the heaviest first. Log evidence: of a mode with all copies that the symmetry makes. Starts: "
        f"how many of {found.starts} led there. R-hat: of the mode's own chains, the worst. Strays: the share of their "
        "draws that lie in other modes.",
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
    """In three digits, as the sentence says it; of what is next to nothing the power of ten."""
    log_weight = float(found.table["log_weight"][number])
    return format_number(math.exp(log_weight)) if log_weight > SMALL else share(log_weight)


def _figure(subject: Subject, found: ModesSummary) -> FigureItem | None:
    """The two parameters that tell modes apart best; None where the draws are of one mode."""
    of = subject.view.stat(schema.MODE)
    if of is None or len(np.unique(of)) < 2:
        return None
    quantities = subject.several(subject.worst[:LOOKED_AT])
    # Squared distances of the modes' means, pair by pair, over the mean of their variances.
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
    # In the plane of these two the closest two modes are farthest apart.
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
    counted = "; each has draws by its weight" if found.known else ""
    return FigureItem(
        draw_modes(points, x_label=x, y_label=y),
        caption=f"`{x}` and `{y}`, which tell the modes apart best, one colour a mode{counted}.",
        alt=f"{'; '.join(told)}.",
    )
