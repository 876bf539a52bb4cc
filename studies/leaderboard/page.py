"""The page: the leaderboard in words, its tables and its figure."""

from __future__ import annotations

from collections.abc import Iterator

from onebasin.analysis.compare.reference.judging import FALSE_ALARM, SEEN
from onebasin.analysis.compare.reference.result import FLAGS
from onebasin.analysis.page.page import FigureItem
from onebasin.base.table import TableCell

from .. import lab
from ..lab import Chapter, Field, Frames, Row, RowTable
from ..lab.figures import plot_cells
from . import design
from .design import LeaderboardConfig, problem_of
from .measures import CLAIMS, measure

_AGREES = ("agrees", "agrees in part")


def _verdict(row: Row) -> TableCell:
    return TableCell(row["verdict"], FLAGS[row["verdict"]])


def _method(row: Row) -> TableCell:
    return TableCell(row["label"], note="recorded" if row["recorded"] else "")


def best_first(frames: Frames) -> list[Row]:
    """Rows by reference, and of each by the worst error of a mean; what cannot be judged comes last."""
    rows = lab.read("cells", frames)

    def error(row: Row) -> tuple[bool, float]:
        worst = row.get("worst")
        return row["verdict"] == "cannot be judged", float("inf") if worst is None else worst

    return [row for own in rows.groups(["problem"]) for row in sorted(own, key=error)]


_COLUMNS = (
    Field(
        "mean off by", "worst", decimals=3, unit="sds, worst", note=lambda row: f"`{row['where']}`"
    ),
    Field("mean off by", "median", decimals=3, unit="sds, median"),
    Field("5, 95 % off by", "tail", decimals=2, unit="sds, worst"),
    Field("sd ratio", "sd_ratio", decimals=2, unit="median"),
    Field("sd ratio", "sd_low", decimals=2, unit="smallest"),
    Field("prediction", "prediction", digits=2, unit="distance"),
    Field("by chance", "prediction_floor", digits=2, unit="halves"),
    Field("gradients", "gradients"),
    Field("time", "seconds", unit="s"),
)

BOARD = RowTable(
    "Every method compared with every reference, the smallest error first",
    (
        Field("reference", "problem"),
        Field("method", _method),
        Field("verdict", _verdict),
        *_COLUMNS,
    ),
    over=best_first,
    drop_empty=True,
)


def board_of(reference: str) -> RowTable:
    """The methods compared with one reference."""
    return RowTable(
        "The smallest error first",
        (Field("method", _method), Field("verdict", _verdict), *_COLUMNS),
        over=lambda frames: lab.Frame.of(best_first(frames)).where(problem=reference),
        drop_empty=True,
    )


def over_all(frames: Frames) -> Iterator[Row]:
    """A row a method: on how many references it agrees, and what that costs."""
    rows, failures = lab.read("cells", frames), lab.read("failures", frames)
    lost = [row["key"] for row in failures]
    for own in rows.groups(["method"]):
        verdicts, (first, *_) = own.column("verdict"), own
        yield {
            "label": first["label"],
            "recorded": first["recorded"],
            "agrees": sum(verdict in _AGREES for verdict in verdicts),
            "differs": verdicts.count("differs"),
            "unjudged": verdicts.count("cannot be judged"),
            "failed": sum(f".{first['method']}." in key for key in lost),
            **{name: own.median(name) for name in ("worst", "sd_ratio", "gradients", "seconds")},
        }


OVER_ALL = RowTable(
    "Every method over all references that it is for; medians over these",
    (
        Field("method", _method),
        Field("agrees", "agrees", unit="references"),
        Field("differs", "differs"),
        Field("cannot be judged", "unjudged"),
        Field("failed", "failed"),
        Field("mean off by", "worst", decimals=2, unit="sds, worst"),
        Field("sd ratio", "sd_ratio", decimals=2),
        Field("gradients", "gradients"),
        Field("time", "seconds", unit="s"),
    ),
    over=over_all,
)
REASONS = RowTable(
    "Every verdict in words",
    (Field("reference", "problem"), Field("method", _method), Field("what was found", "said")),
    over=best_first,
)

VIEWS = (OVER_ALL, BOARD, lab.CLAIMS, lab.TRIALS, REASONS, lab.FAILURES)


_DEFINITIONS = (
    (
        "Mean off by, 5 and 95 % off by",
        "The run's mean (5 or 95 % quantile) less the reference's, over the reference's sd, of the quantity where that "
        "is largest, and of the median quantity. Quantities are the parameters, every draw matched with the "
        "reference's canonical labelling, and the reference's invariants, which no relabelling changes.",
    ),
    (
        "Verdict",
        f"Mean, 5 % quantile, median and 95 % quantile of every quantity are tested together: a run that is right is "
        f"said to differ with a probability of at most {FALSE_ALARM:g}. One that agrees does so as far as its Monte "
        f"Carlo error can see: what would have been seen with probability {SEEN:g} is said with every verdict. In "
        "part: in what no relabelling changes, while entries under labels cannot be judged. A run cannot be judged "
        "where R-hat or ESS, modulo symmetry, forbid it.",
    ),
    (
        "sd ratio",
        "The run's posterior sd over the reference's, median and smallest over the parameters.",
    ),
    (
        "Prediction, by chance",
        "Of a network: difference of the means of f from the reference's over its sd of f, root mean square over the "
        "training points; of a classifier the halved total variation of class probabilities. By chance: what two "
        "halves of the reference's kept draws differ by.",
    ),
    (
        "Gradients, time",
        "Gradients of the log density of all chains or fits, warmup included, and seconds, compiling included; of "
        "what is made from draws, these are counted. Of an added method, gradients are what its posterior's attribute "
        "`gradient_evaluations` says.",
    ),
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cells = lab.read("cells", frames)
    if not len(cells):
        return
    own = [row for row in cells if not row["recorded"]]
    counts = {verdict: sum(row["verdict"] == verdict for row in own) for verdict in _SAID}
    said = ", ".join(f"{count} {_SAID[verdict]}" for verdict, count in counts.items() if count)
    count = len(cells.levels("problem"))
    yield f"{len(own)} posteriors on {count} reference{'s' * (count != 1)}: {said}."
    for reference in cells.levels("problem"):
        judged = [row for row in best_first(frames) if row["problem"] == reference]
        judged = [row for row in judged if row["verdict"] != "cannot be judged"]
        if judged and judged[0].get("worst") is not None:
            best = judged[0]
            yield (
                f"{reference}: the smallest worst error of a mean is {best['worst']:.3f} sds, of {best['label']}."
            )
    yield lab.count_verdicts(frames, of="claims", hold=("holds", "hold"))


_SAID = {
    "agrees": "agree with theirs",
    "agrees in part": "agree in part",
    "differs": "differ",
    "cannot be judged": "cannot be judged",
}


def chapters(
    config: LeaderboardConfig, outcomes: lab.Outcomes, frames: Frames
) -> Iterator[Chapter | None]:
    """Lay out the page."""
    yield Chapter(
        "The question",
        "Which method comes how near to a posterior that is known, modulo its symmetry, and at what cost? Every method "
        "was run once, from one seed, on every reference posterior that it is for.",
    )
    yield Chapter("Over all references", views=(OVER_ALL,))
    title = "How far each method is from the references"
    yield Chapter(title, views=(lab.CLAIMS,), extras=(_errors(frames),))
    for reference in config.references:
        yield Chapter(reference, f"{problem_of(reference).title}.", (board_of(reference),))
    yield Chapter("Every verdict in words", views=(REASONS,))
    yield Chapter("Every comparison", views=(lab.TRIALS,))
    yield lab.failed(frames)


def _errors(frames: Frames) -> FigureItem | None:
    groups: dict[str, dict[str, float]] = {}
    for row in lab.read("cells", frames).known("worst"):
        if row["worst"] > 0:
            groups.setdefault(row["problem"], {})[row["label"]] = row["worst"]
    if not groups:
        return None
    return FigureItem(
        plot_cells(groups, x_label="worst error of a mean, in sds", log_scale=True),
        caption="How far the worst mean of each method is from the reference's, modulo symmetry; on a "
        "logarithmic axis.",
        alt="Dot plot of the worst error of a mean of every method, a colour a reference",
    )


STUDY = lab.Study(
    design.configure, design.cells, design.target, measure, CLAIMS, VIEWS,
    "The leaderboard: methods compared with reference posteriors",
    headline, chapters, _DEFINITIONS,
    run_name=lambda cell: None,
    shown=(BOARD, OVER_ALL, lab.FAILURES),
    make=design.make,
)  # fmt: skip
