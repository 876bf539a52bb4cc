"""All parameters by variable, and where they lie: parameters first, what is computed of them apart."""

from __future__ import annotations

from onebasin.base.table import format_number
from onebasin.posteriors.draws import variable_of

from ...page.page import Details, FigureItem, Part, Section
from ...plots.marginals import draw_forest, intervals_in_words
from ...summaries.summary import COLUMNS
from ..parameter_tables import grouped_table
from ..subject import Subject, listed, thinned

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
                draw_forest(quantities),
                caption=f"{which} parameters: medians (points) and where 50 % and 90 % of draws lie (lines).{aligned}",
                alt=intervals_in_words(list(quantities), *ends),
            )
        )
    return Section("Parameters", parts=tuple(parts))
