"""The page: the study in words, its tables and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onebasin.analysis.page.page import FigureItem
from onebasin.base.table import Table

from .. import lab
from ..lab import Chapter, Field, Frames, Row, RowTable
from ..lab.figures import plot_cells
from ..lab.page import Tabulate
from ..lab.shared import MAX_RHAT
from . import design
from .claims import CLAIMS, no_truth
from .design import PROBLEMS, REMEDIES, RemediesConfig
from .measures import OUTPUTS, measure


def of_problem(problem: str) -> Callable[[Frames], Iterator[Row]]:
    """Give a row for each remedy on a data set, with those of its runs as `runs`."""

    def read(frames: Frames) -> Iterator[Row]:
        there = lab.read("cells", frames)
        for remedy in REMEDIES:
            runs = there.where(dataset=problem, remedy=remedy.name)
            if runs:
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


def remedies_on(problem: str) -> Callable[[Frames], Table]:
    """Tabulate the remedies on one data set."""
    classifier = problem == "digits"
    error = Field("RMSE", _runs("rmse", 3), unit="standardised")
    if classifier:
        error = Field("accuracy", _runs("accuracy", 3))
    interval = "sets of classes" if classifier else "intervals"
    unit = "total variation, halved" if classifier else "the truth's sds of f, rms"
    return RowTable(
        f"{problem}: every remedy, run 1 / run 2. Bounds are lower bounds of the log evidence; distances and spread "
        "are compared with NUTS on the same model; R-hat of a variational method is over its fits",
        (
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
        ),
        over=of_problem(problem),
    )


TRUTH = RowTable(
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
    over=lambda frames: lab.read("cells", frames).where(method="nuts"),
)


FITS = RowTable(
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
    over=lambda frames: [row for row in lab.read("cells", frames) if row["fits"] > 1],
)
TABLES = {problem: remedies_on(problem) for problem in PROBLEMS}
VIEWS: tuple[Tabulate, ...] = (*TABLES.values(), lab.CLAIMS, TRUTH, FITS, lab.TRIALS, lab.FAILURES)


_SINGLE = ("meanfield", "symmetrised", "gaussian", "gaussian-full", "distilled")
"""Methods that leave one Gaussian."""
_DEFINITIONS = (
    (
        "Bound",
        "A lower bound of the log evidence in nats: the ELBO, of symmetrised VI the lower end of what encloses its "
        "symmetrised ELBO; means over fits. Models with other priors have other evidence: bounds of `ordered biases` "
        "and of free ones can be compared, since ordering changes no function's probability; those of unit-norm "
        "weights and of skips are of models of their own. Draws, ensembles and the distilled Gaussian, which is no "
        "approximation of the weights' posterior, have none.",
    ),
    (
        "Gap",
        "By how much the bound of a plain fit rises, at least, if it is averaged over all orders of the units after "
        "training (Kurle et al. 2021, equation 6), of the fit with the highest bound. None is left where the order is "
        "broken.",
    ),
    (
        "Active units",
        "Hidden units of whose incoming weights the data have told more than a nat (divergence from the prior), of the "
        "fit with the highest bound; the others have collapsed to the prior. Unit vectors have no normal prior.",
    ),
    (
        "Distance",
        "Of a regression, the difference of the means of f (the output without noise) from the truth's over the "
        "truth's sd of f, root mean square over test points. Of a classifier, the halved total variation of class "
        "probabilities, a mean over test points. The truth are draws of NUTS on the same model.",
    ),
    (
        "Spread",
        "Standard deviation over draws of f, or of class probabilities, root mean square over test points, over the "
        "truth's.",
    ),
    (
        "Coverage",
        "Share of test points inside the central 95 % predictive interval; of a classifier, of labels in the smallest "
        "set of classes that has 95 %, which is larger than 95 % where the network is sure.",
    ),
    (
        "R-hat",
        "The largest one: of weights as they came, of weights after alignment modulo permutations, of outputs at the "
        f"first {OUTPUTS} test points. Over chains, or over fits from other starts: there it says whether fits agree.",
    ),
    (
        "Gradients, time",
        "Gradients of the likelihood of all training data, and seconds, of all chains or members, or of one fit; what "
        "a representation is made from is counted. Seconds include compiling.",
    ),
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cells = lab.read("cells", frames)
    for problem in cells.levels("dataset"):
        rows = cells.where(dataset=problem, method=_SINGLE).known("distance")
        words = []
        for run in sorted(rows.levels("run")):
            best = min(rows.where(run=run), key=lambda row: row["distance"])
            words.append(f"{best['label']} in run {run} ({best['distance']:.3f})")
        if words:
            yield f"On {problem} the Gaussian that predicts nearest to NUTS on its model is {', '.join(words)}."
    void = [row for row in cells if row["method"] == "nuts" and no_truth(frames, row)]
    if void:
        names = ", ".join(f"{row['dataset']} ({row['label']}, run {row['run']})" for row in void)
        yield lab.Caution(f"Chains of NUTS disagree on outputs, so are no truth: {names}.")
    yield lab.count_verdicts(frames, of="statements", hold=("holds everywhere", "hold everywhere"))


def chapters(
    config: RemediesConfig, outcomes: lab.Outcomes, frames: Frames
) -> Iterator[Chapter | None]:
    """Lay out the page."""
    runs = "once" if config.runs == 1 else f"{config.runs} times, with other data and other seeds"
    yield Chapter(
        "The question",
        "Hidden units can change places, so that a network's posterior has equal modes. What should be done about "
        "it: nothing, break the symmetry in the model (ordered biases, unit-norm weights, orthogonal skips), average "
        "the approximation over it, or divide it out of draws afterwards? And what is gained over an ensemble?\n\n"
        f"Every remedy is put to three data sets, {runs}. The networks have one hidden layer of ReLU units and N(0, 1) "
        "priors, so that chains of NUTS agree on what is predicted and are a truth. With unit norms the priors are "
        "scaled so that units are as steep as free ones: what is seen is the constraint, not another prior.",
    )
    yield Chapter("What holds everywhere", views=(lab.CLAIMS,))
    for problem in config.problems:
        drawn, text = _distances(problem, frames), f"{PROBLEMS[problem]}."
        yield Chapter(f"The remedies on {problem}", text, (TABLES[problem],), (drawn,))
    yield Chapter("Is the truth the truth?", views=(TRUTH,))
    yield Chapter("Fits from other starts", views=(FITS,))
    yield Chapter("Every comparison", views=(lab.TRIALS,))
    yield lab.failed(frames)


def _distances(problem: str, frames: Frames) -> FigureItem | None:
    rows = lab.read("cells", frames).where(dataset=problem).known("distance")
    shown = tuple(remedy.name for remedy in REMEDIES if remedy.method != "nuts")
    groups = {
        f"run {run}": {row["label"]: row["distance"] for row in rows.where(run=run, remedy=shown)}
        for run in sorted(rows.levels("run"))
    }
    if not any(groups.values()):
        return None
    drawn = plot_cells(groups, x_label="distance from the truth in prediction", log_scale=True)
    return FigureItem(
        drawn,
        caption=f"How far predictions on {problem} are from NUTS's on the same model; on a logarithmic axis.",
        alt=f"Dot plot of the distance from the truth of every remedy on {problem}",
    )


STUDY = lab.Study(
    design.configure, design.cells, design.target, measure, CLAIMS, VIEWS,
    "Which remedy for a network's symmetry?", headline, chapters, _DEFINITIONS,
    run_name=lambda cell: cell.label if cell.method in ("nuts", "meanfield") else None,
    shown=(*TABLES.values(), lab.CLAIM_VERDICTS),
    make=design.make,
)  # fmt: skip
