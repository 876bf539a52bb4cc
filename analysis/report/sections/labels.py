"""Labels before and after alignment: traces, densities, switches over time; label-free quantities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from onebasin.base.table import format_number
from onebasin.posteriors.draws import Draws, variable_of

from ...page.page import Details, FigureItem, Note, Part, Section
from ...plots.labellings import draw_labellings, labellings_in_words
from ...plots.traces import traces_in_words
from ...summaries.modes import modes_of
from ..parameter_tables import grouped_table, quantity_table
from ..subject import Quantity, Subject, listed
from .chains import draw_chains

DRAWN = 4
"""Entries that are drawn before and after."""
INVARIANTS = 12


def labels(subject: Subject) -> Section | None:
    """Show what alignment did to a posterior; None where there is no symmetry, or draws came in one labelling."""
    aligned = subject.diagnosis.aligned
    if aligned is None or subject.aligned_draws is None:
        return None
    # Draws that have the labelling of their mode may be used so: another rule would mix modes again.
    if subject.verdict.answer == "usable" and modes_of(subject.view) is not None:
        return None
    moved = list(map(str, aligned.aligned.parameters.index))
    rhat = aligned.raw.parameters["rhat"].reindex(moved).fillna(0.0)
    worst = variable_of(rhat.idxmax())
    names = tuple([name for name in moved if variable_of(name) == worst][:DRAWN])
    before = _several(subject.raw_draws, names)
    after = _several(subject.aligned_draws, names)
    rule, *happened = aligned.sentences
    parts: list[Part] = [" ".join(happened)]
    if aligned.caveat:
        parts.append(Note(aligned.caveat))
    parts += [Note(text, "warn") for text in aligned.warnings]
    if before and after:
        rhats = aligned.raw.parameters["rhat"], aligned.aligned.parameters["rhat"]
        parts.append(_traced(before, "As they came", _worst(rhats[0], before)))
        parts.append(_traced(after, "Aligned", _worst(rhats[1], after)))
    if not aligned.alignment.rotates:  # every draw has a rotation of its own
        from ...alignment.switching import labelling_numbers  # here: it loads JAX

        numbers = labelling_numbers(aligned.alignment.element)
        parts.append(
            FigureItem(
                draw_labellings(numbers),
                caption="The labelling that every draw came with, one strip a chain. A strip of one colour never "
                "switched; strips of different colours lie in mirror images of one mode.",
                alt=labellings_in_words(numbers),
            )
        )
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


def _several(draws: Draws, names: tuple[str, ...]) -> dict[str, Quantity]:
    values = {name: draws.of(name) for name in names if name in draws.names}
    return {n: v for n, v in values.items() if np.isfinite(v).all() and np.ptp(v) > 0}


def _worst(rhats: pd.Series, quantities: Mapping[str, Quantity]) -> float:
    return float(np.nanmax([rhats[name] for name in quantities], initial=-np.inf))


def _traced(quantities: dict[str, Quantity], what: str, rhat: float) -> FigureItem:
    known = f" R-hat is at most {format_number(rhat, decimals=3)}." if np.isfinite(rhat) else ""
    return FigureItem(
        draw_chains(quantities, title=what),
        caption=f"{what}: densities (left) and traces (right) of {listed(list(quantities))}, chain by chain.{known}",
        alt=f"{what}. {traces_in_words(quantities)}",
    )
