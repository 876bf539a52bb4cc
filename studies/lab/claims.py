"""Claims: a sentence of a paper, the rule by which it is tried, and what the frames say of it.

A claim is tried in several comparisons. Most tests are one of two: `contrast` (rows that differ in one factor) and
`each` (every row); `lab.effects` has those of many pairs, with intervals. A function of the rows returns the numbers
in words and whether the claim holds.

Each comparison holds, contradicts the claim, is open (the numbers can be trusted and do not decide, as an interval that
holds zero), or cannot be judged (chains that disagree, a number that is missing, too few pairs). What is open or cannot
be judged counts for neither side: the claim then reproduces, or is contradicted, in part, and never outright, since
comparisons that cannot be judged are those where sampling was hardest. A claim is unclear where no comparison decides,
or where some hold and others contradict it; where each is an effect with an interval, it depends on what is compared.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .frame import Frame, Frames, Row, Rows, has_holes, read
from .pairs import Holds, Pairs

Verdict = Literal[
    "reproduces",
    "reproduces in part",
    "contradicted in part",
    "does not reproduce",
    "depends",
    "unclear",
]


@dataclass(frozen=True)
class Trial:
    """One comparison in which a claim was tried."""

    where: str  # What was compared.
    measured: str  # The numbers.
    holds: Holds  # Whether the claim holds there.

    def __post_init__(self) -> None:
        """Take no number that is not finite, nor NumPy's words, for a verdict."""
        if self.holds == "open":
            return
        known = self.holds is not None and self.holds == self.holds
        object.__setattr__(self, "holds", bool(self.holds) if known else None)


Test = Callable[[Frames], Iterable[Trial]]


@dataclass(frozen=True)
class Statement:
    """A claim, tried."""

    label: str
    quote: str
    rule: str  # `label`, `quote`, `rule`: those of the claim.
    trials: tuple[Trial, ...]  # The comparisons.
    verdict: Verdict  # What follows from them, computed.

    @property
    def outcome(self) -> str:
        """In how many comparisons it holds."""
        if not self.trials:
            return "not measured in this run"
        judged = [trial.holds for trial in self.trials if trial.holds is not None]
        void = len(self.trials) - len(judged)
        if not judged:
            return f"none could be judged, of {void}"
        held = f"holds in {judged.count(True)} of {len(judged)}"
        still_open = f", {judged.count('open')} open" if "open" in judged else ""
        if void:
            return f"{held} that could be judged{still_open}; {void} could not"
        return held + still_open


@dataclass(frozen=True)
class Claim:
    """A sentence that numbers can contradict."""

    label: str  # A few words: what of it is tried here.
    quote: str  # The paper's words.
    rule: str  # When a comparison counts for it.
    test: Test  # From the frames to the comparisons.
    mixed: Verdict = "unclear"  # What comparisons that contradict each other amount to.

    def on(self, frames: Frames) -> Statement:
        """Try the claim on what was measured."""
        trials: list[Trial] = []
        try:
            for trial in self.test(frames):
                trials.append(trial)
        except (TypeError, ZeroDivisionError):
            if not any(has_holes(row) for frame in frames.values() for row in frame):
                raise
            trials.append(Trial("the rest", "a number is missing or not finite", None))
        verdict = judge([trial.holds for trial in trials], self.mixed)
        return Statement(self.label, self.quote, self.rule, tuple(trials), verdict)


def judge(holds: Sequence[Holds], mixed: Verdict = "unclear") -> Verdict:
    """Say what follows if a claim holds, or not, in these comparisons; `mixed`, where they contradict each other."""
    decided = {answer for answer in holds if isinstance(answer, bool)}
    if len(decided) != 1:
        return mixed if decided else "unclear"
    in_all = all(isinstance(answer, bool) for answer in holds)
    if True in decided:
        return "reproduces" if in_all else "reproduces in part"
    return "does not reproduce" if in_all else "contradicted in part"


def count_verdicts(frames: Frames) -> str:
    """Say in a sentence how many statements of the paper reproduce."""
    verdicts = frames["statements"].column("verdict")
    words: dict[Verdict, tuple[str, str]] = {
        "reproduces": ("reproduces", "reproduce"),
        "reproduces in part": ("does in part", "do in part"),
        "does not reproduce": ("does not", "do not"),
        "contradicted in part": ("is contradicted in part", "are contradicted in part"),
        "depends": ("depends on what is compared", "depend on what is compared"),
        "unclear": ("is unclear", "are unclear"),
    }
    always = ("reproduces", "does not reproduce", "unclear")
    counted = {verdict: verdicts.count(verdict) for verdict in words}
    parts = (
        f"{number} {words[verdict][number != 1]}"
        for verdict, number in counted.items()
        if number or verdict in always
    )
    return f"Of {len(verdicts)} statements of the paper, {', '.join(parts)}."


def tried(claims: Sequence[Claim], frames: Frames) -> tuple[tuple[Statement, ...], Frames]:
    """Try all claims; return what became of them, and the frames with `statements` and `trials`."""
    statements = tuple(claim.on(frames) for claim in claims)
    columns = ("label", "quote", "rule", "outcome", "verdict")
    judged = Frame.of({name: getattr(s, name) for name in columns} for s in statements)
    trials = Frame.of({"label": s.label, **vars(trial)} for s in statements for trial in s.trials)
    return statements, {**frames, "statements": judged, "trials": trials}


Finding = tuple[str, Holds]
"""Numbers in words, and whether the claim holds."""
Void = Callable[[Frames, Row], bool]
"""A function that tells whether a row's numbers cannot be trusted."""


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
                    yield _trial(where(a, b), tried, frames, void, a, b)

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
            yield _trial(name, tried, frames, void, row)

    return test


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
        """Return the value of a key, or the default, as a dictionary does."""
        return self._noted(name, super().get(name, default))

    def _noted(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return _Watched(value, self.missed)
        if value is None or (isinstance(value, list) and None in value):
            self.missed.append(name)
        return value


def _trial(
    where: str, tried: Callable[..., Finding], frames: Frames, void: Void, *rows: Row
) -> Trial:
    """Ask what rows say; a claim does not hold in rows that are void, or lack a number that is asked for."""
    missed: list[str] = []
    try:
        words, holds = tried(*(_Watched(row, missed) for row in rows))
    except (TypeError, ZeroDivisionError):
        if not missed:
            raise
        return Trial(where, f"{missed[-1]} is missing or not finite", None)
    cannot = (missed and holds) or any(void(frames, row) for row in rows)
    return Trial(where, words, None if cannot else holds)
