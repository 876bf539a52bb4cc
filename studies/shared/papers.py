"""Tools for the studies of several papers: counts, claims that are effects, names of posteriors, their numbers."""

from collections.abc import Sequence

from onebasin.base.errors import StudyError

from ..lab import (
    ENGINE_WORDS,
    METHOD_WORDS,
    MIN_PAIRS,
    Claim,
    Effect,
    Field,
    Row,
    Rows,
    RowTable,
    Test,
)
from ..lab.frame import averages

MOST = 99
"""Data sets, or splits, at most: keys number them by two digits."""


def check_number(option: str, number: int) -> None:
    """Refuse a number of data sets or of splits that makes no sense; `option` is its name on the command line."""
    if not 1 <= number <= MOST:
        raise StudyError(f"`--{option}` is {number}; it must be a whole number from 1 to {MOST}.")


def effect_claim(label: str, quote: str, rule: str, test: Test) -> Claim:
    """Claim an effect over data sets, to whose rule is added when it is open, and when it is not judged."""
    open_ = f"open where the interval holds both, not judged with fewer than {MIN_PAIRS} data sets"
    return Claim(label, quote, f"{rule}; {open_}", test, mixed="depends")


def sampled_by(row: Row) -> str:
    """Name the method and the engine of a row."""
    return f"{METHOD_WORDS[row['method']]}, {ENGINE_WORDS[row['engine']]}"


def posterior_name(row: Row) -> str:
    """Name a row's problem, method and engine, without the data set."""
    return f"{row['problem']}, {sampled_by(row)}"


def from_to(first: Row, second: Row) -> str:
    """Name what two rows compare: two problems, by one method and engine."""
    return f"{first['problem']} to {second['problem']}, {sampled_by(first)}"


def with_interval(effect: Effect, form: str = "+.3f") -> str:
    """Write an effect and its interval; the effect alone where it is of a single pair."""
    ends = f" ({effect.low:{form}} to {effect.high:{form}})" if effect.pairs > 1 else ""
    return f"{effect.estimate:{form}}{ends}"


def averaged(caption: str, rows: Rows, factors: Sequence[str], fields: Sequence[Field]) -> RowTable:
    """Tabulate rows with the same `factors` as one: of their number as `datasets`, and of whatever its fields name.

    That are means, and of a column `max_NAME` the largest NAME; see `lab.frame.averages`.
    """
    columns = {field.value for field in fields if isinstance(field.value, str)}
    largest = [name.removeprefix("max_") for name in columns if name.startswith("max_")]
    mean = columns - {*factors, "datasets", *(f"max_{name}" for name in largest)}
    return RowTable(caption, tuple(fields), over=averages(rows, factors, tuple(mean), largest))
