"""Claims: a sentence of a paper, the rule by which it is tried, and what the frames say of it.

A claim is tried in several comparisons (`lab.comparisons`, `lab.effects`). It reproduces if it holds in all of them,
does not if it holds in none, and is unclear otherwise, or where the numbers of a comparison cannot be trusted. Where
each comparison is an effect with an interval, comparisons that contradict each other are no accident: the claim depends
on what is compared.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .frame import Frame, Frames, has_holes

Verdict = Literal["reproduces", "does not reproduce", "depends", "unclear"]


@dataclass(frozen=True)
class Trial:
    """One comparison in which a claim was tried."""

    where: str  # What was compared.
    measured: str  # The numbers.
    holds: bool | None  # Whether the claim holds there; None where the numbers cannot be trusted.

    def __post_init__(self) -> None:
        """Take no number that is not finite, nor NumPy's words, for a verdict."""
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
        sure = [trial.holds for trial in self.trials if trial.holds is not None]
        void = len(self.trials) - len(sure)
        held = f"holds in {sum(sure)} of {len(sure)}" if sure else "nothing can be said"
        return f"{held}, {void} void" if void else held


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
        trials = tuple(_tries(self.test, frames))
        verdict = judge([trial.holds for trial in trials], self.mixed)
        return Statement(self.label, self.quote, self.rule, trials, verdict)


def _tries(test: Test, frames: Frames) -> Iterator[Trial]:
    """Go through a test's comparisons; one that stumbles over a number that is missing or not finite is void."""
    try:
        yield from test(frames)
    except (TypeError, ZeroDivisionError):
        if not any(has_holes(row) for frame in frames.values() for row in frame):
            raise
        yield Trial("the rest", "a number is missing or not finite", None)


def judge(holds: Sequence[bool | None], mixed: Verdict = "unclear") -> Verdict:
    """Say what follows if a claim holds, or not, in these comparisons; None where numbers cannot be trusted."""
    if True in holds and False in holds:
        return mixed
    if not holds or None in holds:
        return "unclear"
    return "reproduces" if all(holds) else "does not reproduce"


def count_verdicts(
    frames: Frames,
    *,
    of: str = "statements of the paper",
    hold: tuple[str, str] = ("reproduces", "reproduce"),
) -> str:
    """Say in a sentence how many statements reproduce; `hold` is its word for one that does, and for several."""
    verdicts = frames["statements"].column("verdict")
    yes, no, open_ = (verdicts.count(v) for v in ("reproduces", "does not reproduce", "unclear"))
    depend = verdicts.count("depends")
    depends = "depends" if depend == 1 else "depend"
    several = f"{depend} {depends} on what is compared, " if depend else ""
    return (
        f"Of {len(verdicts)} {of}, {yes} {hold[yes != 1]}, {no} {'does' if no == 1 else 'do'} not, {several}"
        f"{open_} {'is' if open_ == 1 else 'are'} unclear."
    )


def tried(claims: Sequence[Claim], frames: Frames) -> tuple[tuple[Statement, ...], Frames]:
    """Try all claims; return what became of them, and the frames with `statements` and `trials`."""
    statements = tuple(claim.on(frames) for claim in claims)
    columns = ("label", "quote", "rule", "outcome", "verdict")
    judged = Frame.of({name: getattr(s, name) for name in columns} for s in statements)
    trials = Frame.of({"label": s.label, **vars(trial)} for s in statements for trial in s.trials)
    return statements, {**frames, "statements": judged, "trials": trials}
