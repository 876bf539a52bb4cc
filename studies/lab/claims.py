"""Claims: a sentence of a paper, the rule by which it is tried, and what the frames say of it.

A claim is tried in several comparisons (`lab.comparisons`, `lab.effects`). Each holds, contradicts the claim, is open
(the numbers can be trusted and do not decide, as an interval that holds zero), or cannot be judged (chains that
disagree, a number that is missing, too few pairs). A claim reproduces if it holds in all of them, and does not if all
contradict it. What is open or cannot be judged counts for neither side and takes nothing from the rest: the claim
then reproduces, or is contradicted, in part, and its outcome says in how many comparisons. It never does so outright,
however few these are: comparisons that cannot be judged are no random choice, but those where sampling was hardest. A
claim is unclear where no comparison decides, or where some hold and others contradict it; where each is an effect with
an interval, that is no accident, and the claim depends on what is compared.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .frame import Frame, Frames, has_holes

Verdict = Literal[
    "reproduces",
    "reproduces in part",
    "contradicted in part",
    "does not reproduce",
    "depends",
    "unclear",
]
Holds = bool | Literal["open"] | None
"""Whether a claim holds in a comparison; open where its numbers do not decide, None where it cannot be judged."""


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
        return (
            f"{held} that could be judged{still_open}; {void} could not"
            if void
            else held + still_open
        )


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


def judge(holds: Sequence[Holds], mixed: Verdict = "unclear") -> Verdict:
    """Say what follows if a claim holds, or not, in these comparisons; `mixed`, where they contradict each other."""
    decided = {answer for answer in holds if isinstance(answer, bool)}
    if len(decided) != 1:
        return mixed if decided else "unclear"
    in_all = all(isinstance(answer, bool) for answer in holds)
    if True in decided:
        return "reproduces" if in_all else "reproduces in part"
    return "does not reproduce" if in_all else "contradicted in part"


def count_verdicts(
    frames: Frames,
    *,
    of: str = "statements of the paper",
    hold: tuple[str, str] = ("reproduces", "reproduce"),
) -> str:
    """Say in a sentence how many statements reproduce; `hold` is its word for one that does, and for several."""
    verdicts = frames["statements"].column("verdict")
    words: dict[Verdict, tuple[str, str]] = {
        "reproduces": hold,
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
    return f"Of {len(verdicts)} {of}, {', '.join(parts)}."


def tried(claims: Sequence[Claim], frames: Frames) -> tuple[tuple[Statement, ...], Frames]:
    """Try all claims; return what became of them, and the frames with `statements` and `trials`."""
    statements = tuple(claim.on(frames) for claim in claims)
    columns = ("label", "quote", "rule", "outcome", "verdict")
    judged = Frame.of({name: getattr(s, name) for name in columns} for s in statements)
    trials = Frame.of({"label": s.label, **vars(trial)} for s in statements for trial in s.trials)
    return statements, {**frames, "statements": judged, "trials": trials}
