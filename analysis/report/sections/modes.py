"""The modes that a posterior was put together from: what each weighs, how sure that is, and where they lie."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from onebasin.base.table import Column, Row, Table, TableCell, format_number
from onebasin.posteriors import schema

from ...diagnostics.verdict import FLAGS, Limits
from ...page.page import FigureItem, Section
from ...plots.pair import draw_modes
from ...summaries.modes import MATTERS, ModesSummary, modes_of, share
from ..subject import Subject

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
