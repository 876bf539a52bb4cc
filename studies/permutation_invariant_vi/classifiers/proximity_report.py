"""The section of the page on the nearest equivalent modes: text, table, figure, statements."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from onebasin.analysis.report import Column, Section, Table

from ...lab.claims import Statement, Trial, judge
from ..part import Part
from .proximity import least_useful_width, mean_bound, theorem_bound, volume_bound
from .proximity_measures import SOURCES, ProximityResults
from .proximity_pictures import picture

NAME = "proximity"
TITLE = "How close is the nearest equivalent mode?"
_THEOREM = (
    "For every weight configuration there exists a non-trivial weight space permutation such that [the distance is "
    "at most the bound]."
)
_GOES_TO_ZERO = (
    "In wide neural networks (e.g. fixing [the inputs and outputs] and taking [the width to infinity]), the distance "
    "between a mode and the closest equivalent mode, relative to [||w||], goes to [0]."
)


def part(results: ProximityResults) -> Part:
    """Say what follows from the distances."""
    table = distance_table(results)
    return Part(
        name=NAME,
        headline=headline(results),
        section=Section(TITLE, text=_text(results), tables=(table,), figures=(picture(results),)),
        statements=statements(results),
        tables=(table,),
        shown=(),
        data=results.to_dict(),
    )


def headline(results: ProximityResults) -> tuple[str, ...]:
    """Say the result in a sentence."""
    source = next((s for s in ("mfvi", "networks", "prior") if s in results.sources), None)
    if source is None:
        return ()
    found = results.over_widths(source)
    (narrow, first), (wide, last) = found[0], found[-1]
    return (
        f"The nearest equivalent mode ({SOURCES[source]}) is {first.mean():.2f} ||w|| away at {narrow} units and "
        f"{last.mean():.2f} at {wide}; Theorem 3.1 allows {theorem_bound(narrow, results.part_dim):.0f} and "
        f"{theorem_bound(wide, results.part_dim):.0f}, an average over pairs 2 / sqrt(H - 1), "
        f"{mean_bound(narrow):.2f} and {mean_bound(wide):.2f}.",
    )


def _text(results: ProximityResults) -> str:
    size = least_useful_width(results.part_dim)
    between = ""
    if results.threshold is not None:
        between = (
            f" Below a separation of {results.threshold:.2f} one Gaussian between two modes has no optimum but the "
            "midpoint (see above): a fit there is of two units that share one q."
        )
    return (
        "Equivalent modes that are close are those between which one Gaussian comes to lie. The nearest "
        "permuted copy of a network is always one transposition away, that of its two closest units: "
        "√2 min ||u_i − u_j||.\n\n"
        "Theorem 3.1 bounds it by a volume argument, 2 d / log H! in units of ||w||, d the weights that permutations "
        f"move. With {results.part_dim} weights a unit this is below 2, which the triangle inequality gives for "
        f"nothing, only from 2^{size:.0f} units on. The least of all pairs' distances is at most their root mean "
        "square, and that gives 2 / √(H − 1) for every network: so equivalent modes do come close in wide networks, at "
        "a rate that does not depend on the number of inputs.\n\n"
        "Relative to ||w|| is not relative to the width of a mode. The separation is half the distance in standard "
        f"deviations of q, for the two units where it is least.{between}"
    )


def distance_table(results: ProximityResults) -> Table:
    """Tabulate distances beside bounds."""
    rows = []
    for width in results.widths:
        bounds = (
            theorem_bound(width, results.part_dim),
            volume_bound(width, results.part_dim),
            mean_bound(width),
        )
        for source in results.sources:
            if (source, width) in results.found:
                near = results.found[source, width]
                means = (near.distance.mean(), near.distance.max(), *bounds)
                rows.append(
                    (width, SOURCES[source], *means, near.separation.mean(), near.close.mean())
                )
    within = "" if results.threshold is None else f", within {results.threshold:.2f}"
    columns = (
        Column("units", decimals=0),
        "networks",
        Column("distance", decimals=3, unit="mean, in ||w||"),
        Column("distance", decimals=3, unit="largest"),
        Column("Theorem 3.1", decimals=1),
        Column("its volume argument", decimals=1),
        Column("2 / √(H − 1)", decimals=3),
        Column("separation", decimals=2, unit="least, in sds of q, mean"),
        Column("units with a close one", decimals=3, unit=f"share{within}"),
    )
    caption = "Distance of a network to its nearest permuted copy, beside bounds that hold for every network"
    return Table(columns, tuple(rows), caption).without_empty_columns()


def statements(results: ProximityResults) -> tuple[Statement, ...]:
    """Hold the paper's statements against the distances."""
    return (
        _statement(
            "Theorem 3.1",
            _THEOREM,
            "the largest distance of a source's networks is at most 2 d / log H!",
            _below(results),
        ),
        _statement(
            "equivalent modes come closer in wide networks",
            _GOES_TO_ZERO,
            "a source's mean distance is smaller at every width than at the one before",
            _falls(results),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: Iterable[Trial]) -> Statement:
    found = tuple(trials)
    return Statement(label, quote, rule, found, judge([trial.holds for trial in found]))


def _below(results: ProximityResults) -> Iterable[Trial]:
    for source in results.sources:
        found = results.over_widths(source)
        worst = [(v.max(), theorem_bound(w, results.part_dim)) for w, v in found]
        words = ", ".join(f"{v:.2f} of {bound:.0f}" for v, bound in worst)
        yield Trial(SOURCES[source], words, all(v <= bound for v, bound in worst))


def _falls(results: ProximityResults) -> Iterable[Trial]:
    for source in results.sources:
        found = results.over_widths(source)
        if len(found) > 1:
            means = [values.mean() for _, values in found]
            words = ", ".join(
                f"{mean:.3f} at {w}" for (w, _), mean in zip(found, means, strict=True)
            )
            yield Trial(SOURCES[source], words, bool((np.diff(means) < 0).all()))
