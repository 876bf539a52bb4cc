"""The study's tables: for every data set a row a remedy, with the numbers of all runs side by side."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onebasin.base.table import Table

from .. import lab
from ..lab import Field, Frames, Row, View
from ..lab.tables import Tabulate
from ..shared.heldout import MAX_RHAT
from .design import REMEDIES
from .problems import PROBLEMS


def of_problem(problem: str) -> Callable[[Frames], Iterator[Row]]:
    """Give a row for each remedy on a data set, with those of its runs as `runs`."""

    def read(frames: Frames) -> Iterator[Row]:
        there = lab.read("cells", frames)
        for remedy in REMEDIES if len(there) else ():
            runs = there.where(dataset=problem, remedy=remedy.name)
            if len(runs):
                yield {"label": remedy.label, "runs": sorted(runs, key=lambda row: row["run"])}

    return read


def _runs(name: str, decimals: int, *, scale: float = 1.0) -> Callable[[Row], str | None]:
    """Write a number of every run; None where no run has it."""

    def write(row: Row) -> str | None:
        values: Sequence[Any] = [run.get(name) for run in row["runs"]]
        if all(value is None for value in values):
            return None
        words = ["–" if v is None else f"{scale * v:,.{decimals}f}" for v in values]
        return " / ".join(word.replace("-", "−") for word in words)

    return write


def _fields(classifier: bool) -> tuple[Field, ...]:
    error = (
        Field("accuracy", _runs("accuracy", 3))
        if classifier
        else Field("RMSE", _runs("rmse", 3), unit="standardised")
    )
    interval = "sets of classes" if classifier else "intervals"
    unit = "total variation, halved" if classifier else "the truth's sds of f, rms"
    return (
        Field("remedy", "label"),
        Field("bound", _runs("bound", 1), unit="nats"),
        Field("gap", _runs("gap_lower", 1), unit="nats, at least"),
        Field("active", _runs("active", 0), unit="units, best fit"),
        Field("log score", _runs("log_score", 3), unit="nats"),
        error,
        Field("coverage", _runs("coverage_95", 3), unit=f"95 % {interval}"),
        Field("distance", _runs("distance", 3), unit=unit),
        Field("spread", _runs("spread_ratio", 2), unit="over the truth's"),
        Field("R-hat", _runs("weights_rhat", 2), unit="weights"),
        Field("R-hat", _runs("aligned_rhat", 2), unit="weights, aligned"),
        Field("R-hat", _runs("outputs_rhat", 3), unit="outputs"),
        Field("gradients", _runs("gradients", 1, scale=1e-3), unit="thousands"),
        Field("time", _runs("seconds", 1), unit="s"),
    )


def remedies_on(problem: str) -> Callable[[Frames], Table]:
    """Tabulate the remedies on one data set."""
    return View(
        f"{problem}: every remedy, run 1 / run 2. Bounds are lower bounds of the log evidence; distances and spread "
        "are held against NUTS on the same model; R-hat of a variational method is over its fits",
        _fields(problem == "digits"),
        over=of_problem(problem),
    )


def _truths(frames: Frames) -> Iterator[Row]:
    for row in lab.read("cells", frames):
        if row["method"] == "nuts":
            yield row


TRUTH = View(
    "Is NUTS the truth? Its chains on the outputs, and how far one half of them is from the other",
    (
        Field("chains", lambda row: f"{row['dataset']}, run {row['run']}: {row['label']}"),
        Field("R-hat", "outputs_rhat", 3, 3, "outputs", lab.at_most(MAX_RHAT, otherwise="warn")),
        Field("R-hat", "weights_rhat", decimals=2, unit="weights"),
        Field("R-hat", "aligned_rhat", decimals=2, unit="weights, aligned"),
        Field("distance", "distance_floor", decimals=3, unit="of its halves"),
        Field("gradients", lambda row: row["gradients"] / 1000, decimals=0, unit="thousands"),
        Field("time", "seconds", decimals=0, unit="s"),
    ),
    over=_truths,
)


def _fitted(frames: Frames) -> Iterator[Row]:
    for row in lab.read("cells", frames):
        if row["fits"] > 1:
            yield row


FITS = View(
    "How much fits from other starts differ: means and standard deviations over fits",
    (
        Field("fits", lambda row: f"{row['dataset']}, run {row['run']}: {row['label']}"),
        Field("fits", "fits"),
        Field("bound", "bound", decimals=1, unit="nats"),
        Field("sd", "bound_sd", decimals=1, unit="nats"),
        Field("best", "best_bound", decimals=1, unit="nats"),
        Field("rise", "rise", decimals=1, unit="nats, last evaluations, largest"),
        Field("log score", "log_score", decimals=3, unit="nats"),
        Field("sd", "log_score_sd", decimals=3, unit="nats"),
        Field("distance", "distance", decimals=3),
        Field("sd", "distance_sd", decimals=3),
    ),
    over=_fitted,
)
TABLES = {problem: remedies_on(problem) for problem in PROBLEMS}
VIEWS: tuple[Tabulate, ...] = (*TABLES.values(), lab.CLAIMS, TRUTH, FITS, lab.TRIALS, lab.FAILURES)
SHOWN: tuple[Tabulate, ...] = (*TABLES.values(), lab.CLAIM_VERDICTS)
