"""The nearest equivalent modes: claims, table, sentences, and distances over the width next to the bounds."""

from collections.abc import Callable, Iterator

import numpy as np

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.plots.style import MUTED, add_legend, new_figure, style_axes
from onebasin.base.table import Table

from ...lab import Chapter, Claim, Field, Frames, Row, RowTable, Trial, read
from ..proximity import least_useful_width, mean_bound, theorem_bound, volume_bound
from .measures import SOURCES
from .widths import plain_numbers, series, set_widths

LEAST = 1e-3
"""Distances below this are not shown: pairs of units that training has made equal, at zero or nearly."""
_THEOREM = (
    "For every weight configuration there exists a non-trivial weight space permutation such that [the distance is "
    "at most the bound]."
)
_GOES_TO_ZERO = (
    "In wide neural networks (e.g. fixing [the inputs and outputs] and taking [the width to infinity]), the distance "
    "between a mode and the closest equivalent mode, relative to [||w||], goes to [0]."
)


def sources(frames: Frames) -> Iterator[list[Row]]:
    """Rows of every source that there is, by width."""
    for source in SOURCES:
        rows = sorted(read("nearest", frames).where(source=source), key=lambda row: row["width"])
        if rows:
            yield rows


def _theorem(frames: Frames, row: Row) -> float:
    return theorem_bound(row["width"], frames["classifiers"].rows[0]["unit_size"])


def _below(frames: Frames) -> Iterator[Trial]:
    for rows in sources(frames):
        worst = [(row["largest"], _theorem(frames, row)) for row in rows]
        words = ", ".join(f"{value:.2f} of {bound:.0f}" for value, bound in worst)
        yield Trial(rows[0]["label"], words, all(value <= bound for value, bound in worst))


def _falls(frames: Frames) -> Iterator[Trial]:
    for rows in sources(frames):
        if len(rows) > 1:
            words = ", ".join(f"{row['distance']:.3f} at {row['width']}" for row in rows)
            falls = (np.diff([row["distance"] for row in rows]) < 0).all()
            yield Trial(rows[0]["label"], words, bool(falls))


CLAIMS = (
    Claim(
        "Theorem 3.1",
        _THEOREM,
        "the largest distance of a source's networks is at most 2 d / log H!",
        _below,
    ),
    Claim(
        "equivalent modes come closer in wide networks",
        _GOES_TO_ZERO,
        "a source's mean distance is smaller at every width than at the one before",
        _falls,
    ),
)


def distance_table(frames: Frames) -> Table:
    """Tabulate distances next to bounds."""
    common = frames["classifiers"].rows[0]

    def bound(of: Callable[[float, int], float]) -> Callable[[Row], float]:
        return lambda row: of(row["width"], common["unit_size"])

    threshold = common["threshold"]
    within = "" if threshold is None else f", within {threshold:.2f}"
    fields = (
        Field("units", "width", decimals=0),
        Field("networks", "label"),
        Field("distance", "distance", decimals=3, unit="mean, in ||w||"),
        Field("distance", "largest", decimals=3, unit="largest"),
        Field("Theorem 3.1", bound(theorem_bound), decimals=1),
        Field("its volume argument", bound(volume_bound), decimals=1),
        Field("2 / √(H − 1)", lambda row: mean_bound(row["width"]), decimals=3),
        Field("separation", "separation", decimals=2, unit="least, in sds of q, mean"),
        Field("units with a close one", "close", decimals=3, unit=f"share{within}"),
    )
    caption = "Distance of a network to its nearest permuted copy, compared with bounds that hold for every network"
    return RowTable(caption, fields, over="nearest", drop_empty=True)(frames)


TABLES = (distance_table,)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a sentence."""
    found = {rows[0]["source"]: rows for rows in sources(frames)}
    rows = next((found[s] for s in ("mfvi", "networks", "prior") if s in found), None)
    if rows is None:
        return
    narrow, wide = rows[0], rows[-1]
    yield (
        f"The nearest equivalent mode ({narrow['label']}) is {narrow['distance']:.2f} ||w|| away at {narrow['width']} "
        f"units and {wide['distance']:.2f} at {wide['width']}; Theorem 3.1 allows {_theorem(frames, narrow):.0f} and "
        f"{_theorem(frames, wide):.0f}, an average over pairs 2 / sqrt(H - 1), "
        f"{mean_bound(narrow['width']):.2f} and {mean_bound(wide['width']):.2f}."
    )


def chapter(frames: Frames) -> Chapter:
    """Say what is bounded by what, and tabulate and draw what was found."""
    common = frames["classifiers"].rows[0]
    threshold, size = common["threshold"], least_useful_width(common["unit_size"])
    between = ""
    if threshold is not None:
        between = (
            f" Below a separation of {threshold:.2f} one Gaussian between two modes has no optimum but the "
            "midpoint (see above): a fit there is of two units that share one q."
        )
    text = (
        "Equivalent modes that are close are those between which one Gaussian comes to lie. The nearest permuted copy "
        "of a network is always one transposition away, that of its two closest units: √2 min ||u_i − u_j||.\n"
        "\nTheorem 3.1 bounds it by a volume argument, 2 d / log H! in units of ||w||, d the weights that permutations "
        f"move. With {common['unit_size']} weights a unit this is below 2, which the triangle inequality gives for "
        f"nothing, only from 2^{size:.0f} units on. The least of all pairs' distances is at most their root mean "
        "square, and that gives 2 / √(H − 1) for every network: so equivalent modes do come close in wide networks, at "
        "a rate that does not depend on the number of inputs.\n"
        "\nRelative to ||w|| is not relative to the width of a mode. The separation is half the distance in standard "
        f"deviations of q, for the two units where it is least.{between}"
    )
    title = "How close is the nearest equivalent mode?"
    return Chapter(title, text, TABLES, (nearest_modes(frames),))


def nearest_modes(frames: Frames) -> FigureItem | None:
    """Draw distances and separations over the width, where there are networks of several units."""
    every, common = list(sources(frames)), frames["classifiers"].rows[0]
    if not every:
        return None
    figure = new_figure(7.6, 3.9)
    left, right = figure.subplots(1, 2)
    style_axes(left, title="nearest copy", x_label="hidden units", y_label="distance / ||w||")
    style_axes(right, title="least separation", x_label="hidden units", y_label="sds of q")
    all_widths = sorted({row["width"] for rows in every for row in rows})
    unit_size = common["unit_size"]
    fine = np.geomspace(max(all_widths[0], 2), all_widths[-1], 60)
    lines = {
        "2 / √(H − 1)": ([mean_bound(width) for width in fine], "--"),
        "Theorem 3.1": ([theorem_bound(width, unit_size) for width in fine], ":"),
    }
    for label, (values, dash) in lines.items():
        left.plot(fine, values, dash, color=MUTED, label=label)
    left.axhline(2.0, color=MUTED, linewidth=0.8, label="triangle inequality")
    for place, rows in enumerate(every):
        for axes, measure in ((left, "{}"), (right, "{}_separation")):
            names = [measure.format(word) for word in ("median", "least", "largest")]
            known = [row for row in rows if row[names[0]] is not None]  # a record may lack it
            if known:
                middle, least, most = (np.array([row[n] for row in known]) for n in names)
                bars = (middle - least, most - middle)
                series(axes, known, middle, bars, place, len(every))
    if common["threshold"] is not None:
        right.axhline(common["threshold"], color=MUTED, linewidth=0.8, linestyle="--")
    left.set_yscale("log")
    left.set_ylim(bottom=max(LEAST, left.get_ylim()[0]))
    plain_numbers(left)
    right.set_ylim(bottom=0)
    for axes in (left, right):
        set_widths(axes, all_widths)
    add_legend(figure, *left.get_legend_handles_labels(), columns=3)
    return FigureItem(
        figure,
        caption="Left: distance of networks to their nearest permuted copy, relative to ||w||: medians, and bars "
        "from the least to the largest, compared with Theorem 3.1 and two bounds that are sharper at these widths; "
        f"what is below {LEAST:g} (dead units, all equal) is not shown. Right: half the distance between a mode and "
        "its copy in standard deviations of q, for the two units where it is least; dashed: what it takes for one "
        "Gaussian between two modes to have an optimum at a mode. Marks are moved apart a little.",
        alt="Relative distance to the nearest equivalent mode against hidden units with bounds; least separation of "
        "two units in standard deviations",
    )
