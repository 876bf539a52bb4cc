"""The tests of claims: `contrast`, `each`, `paired`, and what a comparison says.

Most claims are tried by one of three: `contrast` (rows that differ in one factor), `each` (every row) and
`paired` (two levels of a factor, pair by pair). What a comparison says is up to a function of the rows, which
returns the numbers in words and whether the claim holds; `ratio` makes the commonest one. A claim never holds where a
number that is asked for is missing or not finite.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

from onebasin.truth.pairs import Pairs

from .claims import Holds, Test, Trial
from .frame import Frame, Frames, Row, Rows, read

Finding = tuple[str, Holds]
"""Numbers in words, and whether the claim holds."""
Void = Callable[[Frames, Row], bool]
"""Whether a row's numbers cannot be trusted."""


def gains(pairs: Pairs, margin: float) -> Holds:
    """Whether the first of each pair is above the second: `Pairs.gains`, open where that does not say."""
    if pairs.num < 2:
        return None
    gained = pairs.gains(margin)
    return "open" if gained is None else gained


def never(frames: Frames, row: Row) -> bool:
    """Trust every row."""
    return False


def contrast(
    over: Rows,
    factor: str,
    pairs: Iterable[tuple[Any, Any]],
    tried: Callable[[Row, Row], Finding],
    *,
    same: tuple[str, ...],
    where: Callable[[Row, Row], str],
    void: Void = never,
) -> Test:
    """Compare rows that differ in one factor, whose values before and after are `pairs`, and are the `same` else.

    `where` says in words what the two rows compare, `tried` what is found; a row that is `void` makes it void.
    """
    pairs = tuple(pairs)

    def test(frames: Frames) -> Iterable[Trial]:
        rows = read(over, frames)
        for before, after in pairs:
            for a in rows.where(**{factor: before}):
                b = rows.find(**{factor: after}, **{name: a[name] for name in same})
                if b is not None:
                    yield _trial(where(a, b), _found(tried, a, b), frames, (a, b), void)

    return test


def each(
    over: Rows,
    tried: Callable[[Row], Finding],
    *,
    where: str | Callable[[Row], str] = "label",
    void: Void = never,
) -> Test:
    """Ask the same of every row; `where` is its name in words, a column or a function of the row."""

    def test(frames: Frames) -> Iterable[Trial]:
        for row in read(over, frames):
            name = row[where] if isinstance(where, str) else where(row)
            yield _trial(name, _found(tried, row), frames, (row,), void)

    return test


def paired(
    over: Rows,
    measure: str,
    factor: str,
    first: Any,
    second: Any,
    tried: Callable[[Pairs], Finding],
    *,
    by: str,
    same: tuple[str, ...] = (),
    where: Callable[[Row], str],
) -> Test:
    """Compare a measure at two levels of a factor pair by pair: the same seed, the same split, whatever `by` says.

    There is a comparison for each combination of the columns `same`; `where` names it in words from one of its rows.
    """

    def test(frames: Frames) -> Iterable[Trial]:
        rows = read(over, frames)
        for alike in dict.fromkeys(tuple(row[name] for name in same) for row in rows):
            group = rows.where(**dict(zip(same, alike, strict=True)))
            pairs = pair(group, measure, factor, first, second, by=by)
            if pairs.num:
                words, holds = tried(pairs)
                lost = _lost(group, measure, factor, (first, second))
                yield Trial(where(group.rows[0]), words, None if lost and holds else holds)

    return test


def _lost(rows: Frame, measure: str, factor: str, levels: tuple[Any, Any]) -> bool:
    """Whether a row has no finite number, so that its pair is left out."""
    return any(row[measure] is None for row in rows.where(**{factor: levels}))


def pair(rows: Frame, measure: str, factor: str, first: Any, second: Any, *, by: str) -> Pairs:
    """Pair a measure's values at two levels of a factor; what has no partner is left out."""
    sides = [
        {row[by]: row[measure] for row in rows if row[factor] == level} for level in (first, second)
    ]
    both = [key for key in rows.levels(by) if all(side.get(key) is not None for side in sides)]
    return Pairs(*(tuple(side[key] for key in both) for side in sides))


def beside(rows: Iterable[Row], others: Frame, *, same: str) -> Iterable[Row]:
    """Give rows, as `other`, the first of the others that is the same in a column; leave out those without one."""
    found = ((row, others.find(**{same: row[same]})) for row in rows)
    return ({**row, "other": other} for row, other in found if other is not None)


def join(*tests: Test) -> Test:
    """Try a claim by several tests, one after another."""
    return lambda frames: (trial for test in tests for trial in test(frames))


def ratio(
    measure: str | Callable[[Row], float],
    *,
    below: float | None = None,
    above: float | None = None,
) -> Callable[[Row, Row], Finding]:
    """Ask whether the second row's measure, a column or a function, over the first's lies below or above a limit."""

    def tried(first: Row, second: Row) -> Finding:
        a, b = (
            row[measure] if isinstance(measure, str) else measure(row) for row in (first, second)
        )
        if a is None or b is None or not a or not math.isfinite(b / a):
            return "not measured", None
        holds = (below is None or b / a < below) and (above is None or b / a > above)
        return f"{short(a)} to {short(b)}, ratio {b / a:.2f}", holds

    return tried


def short(value: float) -> str:
    """Write a number in three digits, or more where it has more before the point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def counted(number: int, noun: str) -> str:
    """Count things in words."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def span(values: Iterable[float], decimals: int = 2) -> str:
    """Write the smallest and the largest of some numbers, or one where they look the same."""
    numbers = sorted(values)
    low, high = f"{numbers[0]:.{decimals}f}", f"{numbers[-1]:.{decimals}f}"
    return low if low == high else f"{low} to {high}"


class _Watched(dict[str, Any]):
    """A row that notes whether something was asked for that is missing or not finite; a frame has None for both."""

    def __init__(self, row: Row, missed: list[str]) -> None:
        super().__init__(row)
        self.missed = missed

    def __getitem__(self, name: str) -> Any:
        return self._noted(name, super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dictionary."""
        return self._noted(name, super().get(name, default))

    def _noted(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return _Watched(value, self.missed)
        if value is None or (isinstance(value, list) and None in value):
            self.missed.append(name)
        return value


def _found(tried: Callable[..., Finding], *rows: Row) -> Finding:
    """Ask what rows say; where they lack a number that is asked for, the claim does not hold in them."""
    missed: list[str] = []
    try:
        words, holds = tried(*(_Watched(row, missed) for row in rows))
    except (TypeError, ZeroDivisionError):
        if not missed:
            raise
        return f"{missed[-1]} is missing or not finite", None
    return words, None if missed and holds else holds


def _trial(
    where: str, finding: Finding, frames: Frames, rows: tuple[Row, ...], void: Void
) -> Trial:
    words, holds = finding
    return Trial(where, words, None if any(void(frames, row) for row in rows) else holds)
