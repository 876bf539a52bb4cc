"""Effects: how much a measure changes over many data sets or splits, with an interval and a paired test.

`changes` compares two levels of a factor pair by pair (the same data set, the same split), `exceeds` a measure with a
limit; see `lab.pairs` for interval and test. A claim holds if the whole interval lies on its side, it does not if the
whole interval lies on the other, and is open otherwise. With fewer pairs than Wilcoxon's test needs it cannot be
judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onebasin.base.table import TableCell

from .claims import Test, Trial, Void, counted, never
from .frame import Frames, Row, Rows, read
from .page import Field, RowTable, yes_no
from .pairs import MIN_PAIRS, Effect, Holds, Pairs, Scale, Side, effect_of

Measure = str | Callable[[Row], float | None]
"""A column, or a function of the row."""
Rule = Callable[[Pairs, Effect], Holds]
"""A test of whether a claim holds of enough pairs, where that is not by the side on which the interval lies."""


@dataclass(frozen=True)
class Measured(Trial):
    """A comparison with its effect."""

    scale: Scale = "difference"
    estimate: float | None = None
    low: float | None = None
    high: float | None = None  # `low`, `high`: ends of the interval.
    p_value: float | None = None
    pairs: int = 0  # Pairs that were compared.
    left_out: int = 0  # Pairs whose chains disagree, or that lack a number.


def changes(
    over: Rows,
    measure: Measure,
    factor: str,
    levels: Iterable[tuple[Any, Any]],
    holds: Side | Rule,
    *,
    scale: Scale,
    by: str,
    same: tuple[str, ...],
    where: Callable[[Row, Row], str],
    void: Void = never,
    overlap: float = 0.0,
    note: Callable[[Sequence[Row]], str] = lambda rows: "",
) -> Test:
    """Claim that a measure changes to a side between two levels of a factor, pair by pair, or whatever a rule says.

    There is a comparison for each pair of `levels` and each combination of the columns `same`; `where` names it from
    two of its rows, `by` is the column that pairs have in common, and `note` may add words on the rows compared.
    """
    levels = tuple(levels)

    def judge(first: Sequence[float], second: Sequence[float]) -> tuple[Effect, Holds]:
        pairs = Pairs(first, second)
        effect = pairs.change(scale, overlap=overlap)
        if isinstance(holds, str):
            return effect, effect.lies(holds)
        return effect, holds(pairs, effect) if pairs.num >= MIN_PAIRS else None

    def test(frames: Frames) -> Iterable[Trial]:
        rows = read(over, frames)
        for first, second in levels:
            for group in rows.where(**{factor: (first, second)}).groups(same):
                one, other = (
                    {row[by]: row for row in group.where(**{factor: level})}
                    for level in (first, second)
                )
                pairs = [(row, other[key]) for key, row in one.items() if key in other]
                if pairs:
                    numbers = [[_number(measure, row, frames, void) for row in p] for p in pairs]
                    remark = note([row for pair in pairs for row in pair])
                    yield _trial(where(*pairs[0]), scale, numbers, judge, remark)

    return test


def exceeds(
    over: Rows,
    measure: Measure,
    limit: float,
    *,
    same: tuple[str, ...],
    where: Callable[[Row], str],
    void: Void = never,
) -> Test:
    """Claim that a measure lies above a limit on average; a comparison for each combination of the columns `same`."""

    def judge(values: Sequence[float]) -> tuple[Effect, Holds]:
        effect = effect_of(values, limit)
        return effect, effect.lies("above")

    def test(frames: Frames) -> Iterable[Trial]:
        for group in read(over, frames).groups(same):
            numbers = [[_number(measure, row, frames, void)] for row in group]
            yield _trial(where(group.rows[0]), "difference", numbers, judge)

    return test


def _number(measure: Measure, row: Row, frames: Frames, void: Void) -> float | None:
    """Take a row's measure; None where the row is void, or the number is missing or not finite."""
    if void(frames, row):
        return None
    try:
        value = row[measure] if isinstance(measure, str) else measure(row)
    except TypeError:  # made from a number that is missing
        return None
    return None if value is None else _finite(value)


def _trial(
    name: str,
    scale: Scale,
    numbers: Sequence[Sequence[float | None]],
    judge: Callable[..., tuple[Effect, Holds]],
    note: str = "",
) -> Measured:
    """Judge what has all its numbers, and count what is left out."""
    measured = [each for each in numbers if None not in each]
    left_out = len(numbers) - len(measured)
    if not measured:
        words = f"nothing could be compared, {left_out} left out"
        return Measured(name, words, None, scale, left_out=left_out)
    effect, held = judge(*zip(*measured, strict=True))
    words = in_words(effect, scale) + (f"; {left_out} left out" if left_out else "")
    return Measured(
        name,
        f"{words}; {note}" if note else words,
        held,
        scale,
        estimate=effect.estimate,
        low=_finite(effect.low),
        high=_finite(effect.high),
        p_value=effect.p_value,
        pairs=effect.pairs,
        left_out=left_out,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def in_words(effect: Effect, scale: Scale) -> str:
    """Write an effect with its interval, test and number of pairs."""
    kind = "ratio " if scale == "ratio" else ""
    sign = "" if scale == "ratio" or effect.null else "+"
    numbers = f"{kind}{effect.estimate:{sign}.3g}"
    if effect.pairs > 1:
        numbers += f" ({effect.low:{sign}.3g} to {effect.high:{sign}.3g})"
    test = f", p = {effect.p_value:.2g}" if effect.p_value is not None else ", no test"
    return f"{numbers}{test}, {counted(effect.pairs, 'pair')}"


def _interval(row: Row) -> str | None:
    if row["low"] is None:
        return None
    sign = "" if row["scale"] == "ratio" else "+"
    return f"{row['low']:{sign}.3g} to {row['high']:{sign}.3g}"


EFFECTS = RowTable(
    "Every comparison behind the verdicts: the mean effect over pairs, its 95 % interval, and a paired Wilcoxon test",
    (
        Field("statement", "label"),
        Field("compared", "where"),
        Field("as", "scale"),
        Field("effect", "estimate"),
        Field("interval", _interval, unit="95 %"),
        Field("p", "p_value", digits=2, unit="Wilcoxon"),
        Field("pairs", "pairs"),
        Field("left out", "left_out", unit="pairs"),
        Field(
            "holds",
            lambda row: (
                TableCell("too few pairs", "warn") if row["holds"] is None else yes_no(row["holds"])
            ),
        ),
    ),
    over=lambda frames: frames["trials"].known("scale"),
)
"""The effects of a study's claims."""
