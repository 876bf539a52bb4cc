"""The study in words: its headline, and the chapters of its page."""

from collections.abc import Iterator

from onebasin.analysis.page.page import Note
from onebasin.analysis.report.definitions import DIAGNOSTICS as DIAGNOSTIC_TERMS
from onebasin.truth.problems.label_switching import PROBLEMS

from ..lab import CLAIMS, TRIALS, Chapter, Frames, Row, Text, count_verdicts, failed, select
from . import views
from .claims import APART, GOOD
from .design import Config

RAW_AND_ALIGNED = "Raw and aligned"
TRUTH = "Is it the truth?"
OVERLAP = "How far apart is apart?"
HEALTH = "Can the draws be trusted?"
_DEFINITIONS = (
    (
        "Raw, aligned, held out",
        "Raw: the draws as the sampler gave them. Aligned: every draw moved by the relabelling that brings it "
        "closest to a diagonal Gaussian fitted to the aligned draws, iterated. Held out: the reference is fitted on "
        "the first half of the chains, and the R-hat is that of the other half.",
    ),
    (
        "By the mean, by a Gaussian",
        "The distance to the reference. By the mean: squared, each variable divided by its spread over all raw "
        "draws. By a Gaussian: each entry divided by its spread over the aligned draws (Stephens 2000), so that "
        "entries that are known well decide.",
    ),
    (
        "Invariants",
        "Quantities that no relabelling changes: the log density, means and mean squares over the parts, and a "
        "network's outputs.",
    ),
)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    apart = APART(frames)
    if apart:
        yield _mended(list(apart))
        yield _rules(list(apart))
    for row in select("cells", kind="overlap")(frames).rows[:1]:
        warned = "warns" if row["warnings"] else "does not warn"
        yield (
            f"Where they overlap, chains go through up to {max(row['labellings'])} labellings each, raw R-hat is "
            f"{row['raw_rhat']:.2f}, and the diagnosis {warned} that aligned means depend on the rule."
        )
    for row in select("cells", kind="modes")(frames).rows[:1]:
        yield (
            f"Where modes differ in more than labels, R-hat is {row['raw_rhat']:.2f} raw and "
            f"{row['aligned_rhat']:.2f} aligned, and the chains are told apart as {len(row['basins'])} groups."
        )
    yield count_verdicts(frames, of="claims", hold=("holds", "hold"))


def _mended(apart: list[Row]) -> str:
    raw = [row["raw_rhat"] for row in apart]
    left = [row for row in apart if row["aligned_rhat"] > GOOD]
    sentence = (
        f"Where the parts are apart, the worst R-hat is {min(raw):.2f} to {max(raw):.2f} raw, and aligned at "
        f"most {GOOD:g} in {len(apart) - len(left)} of {len(apart)} posteriors; their smallest bulk ESS goes from "
        f"{min(row['raw_ess_bulk'] for row in apart):.0f} to {min(row['aligned_ess_bulk'] for row in apart):.0f}."
    )
    names = ", ".join(f"{row['label']} ({row['aligned_rhat']:.3f})" for row in left)
    return sentence + (f" Not in {names}." if left else "")


def _rules(apart: list[Row]) -> str:
    """Say in how many posteriors whose parts are apart either rule lets labels change within a chain."""
    mean, gaussian = (
        sum(max(row[rule]) > 1 for row in apart) for rule in ("labellings_by_mean", "labellings")
    )
    return (
        f"Aligned with the mean, {mean} of these {len(apart)} seem to change labels within chains, which leaves "
        f"posteriors up to {max(row['inflation'] for row in apart):.1f} times as wide; aligned with a Gaussian, "
        f"{gaussian}."
    )


def chapters(config: Config, frames: Frames) -> Iterator[Chapter | None]:
    """Lay out the page."""
    yield Chapter(
        "The question",
        "Where a model's parts are interchangeable, every mode has copies under other labels, and chains "
        "that found different copies look as if they had not converged. Can diagnostics tell this from chains "
        "that have really not converged, once the relabelling is divided out?\n\n"
        "The models below have such parts. Their data are synthetic, so that the truth is known, and NUTS is "
        "told nothing of labels: no order, no start near a mode. In one the parts overlap, and one has modes "
        "that differ in more than labels: alignment must not mend that.",
    )
    yield Chapter(RAW_AND_ALIGNED, views=(views.DIAGNOSTICS,))
    yield Chapter("What is claimed, and what was measured", views=(CLAIMS,))
    yield Chapter(
        "Basins and labels",
        "Two rules of alignment are compared. They differ where a part has entries that the data say "
        "little of: by the mean these count as much as the others, and may carry a draw to another label.",
        views=(views.SWITCHING,),
    )
    yield Chapter(
        TRUTH,
        "Distances are in posterior standard deviations. A posterior that a rule of alignment leaves too wide "
        "looks close to the truth by them, so that the last column belongs beside them.",
        views=(views.RECOVERY,),
    )
    yield Chapter(
        OVERLAP,
        "Of real posteriors nobody knows which labels are right. So parts are drawn whose labels are known, "
        "hidden, and looked for again by every rule.",
        views=(views.rates,),
    )
    yield from map(_model, frames["cells"])
    yield Chapter(
        HEALTH, "The usual health of the chains, before alignment: R-hat and ESS condemn them all."
    )
    yield Chapter("Every comparison", views=(TRIALS,))
    yield failed(frames)


def model_title(row: Row) -> str:
    """Name the chapter of one posterior."""
    return row["label"][0].upper() + row["label"][1:]


def _model(row: Row) -> Chapter:
    """Show one posterior: what it is, what the diagnosis says of it, and its worst parameter."""
    remarks = (
        *(Note(sentence) for sentence in row["sentences"][1:]),  # the first says the rule
        *(Note(warning, "warn") for warning in row["warnings"]),
    )
    return Chapter(model_title(row), PROBLEMS[row["problem"]].words, notes=remarks)


TEXT = Text(
    "Label switching: diagnostics raw and aligned",
    headline,
    chapters,
    definitions=_DEFINITIONS + DIAGNOSTIC_TERMS,
)
