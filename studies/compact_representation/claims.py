"""The paper's statements, and the rules by which they are held against what was measured."""

from collections.abc import Callable, Iterable
from operator import gt, lt

import numpy as np

from ..lab import Claim, Finding, Frames, Row, Test, Trial, contrast, each, read
from .design import RULES
from .measures import KEPT

REMOVED = 0.2
"""A barrier counts as removed where less than this share of it is left."""
SMALL = 0.05
"""Nats; a barrier below this was none to begin with."""
SHRINKS = 0.9
"""Draws count as close to one mode where aligning shrinks their spread, beside that of prior draws, below this."""

_BARRIER = "Rebasin (Ainsworth, 2023) removes the loss barriers."
_FIGURE_5 = (
    "Histograms of the standard deviation of weights before and after rebasin. [...] Test accuracy vs. various "
    "levels of weight pruning (retaining only weights with lowest sd)."
)


def _easier(before: Row, after: Row) -> Finding:
    agreed, agrees = before["agreement"], after["agreement"]
    was, varies = before["total_variation"], after["total_variation"]
    measured = f"agreement {agreed:.3f} to {agrees:.3f}, total variation {was:.3f} to {varies:.3f}"
    return measured, agrees > agreed and varies < was


def _one_basin(row: Row) -> Finding:
    measured = (
        f"{row['ratio']:.3f} of the variance is left, of prior draws {row['prior_ratio']:.3f}"
    )
    return measured, row["ratio"] / row["prior_ratio"] < SHRINKS


def _removed(row: Row) -> Finding:
    raw, aligned = row["barrier_raw"], row["barrier_aligned"]
    return f"{raw:.3f} to {aligned:.3f} nats", aligned < REMOVED * raw if raw >= SMALL else None


def _grows(frames: Frames) -> Iterable[Trial]:
    swaps = read("swaps", frames)
    if swaps:
        after = [row["after"] for row in swaps]
        words = ", ".join(f"{row['before']} to {row['after']:.1f}" for row in swaps)
        rises = bool((np.diff(after) > 0).all()) if len(after) > 1 else None
        yield Trial("means over runs", words, rises)


def _monotonic(row: Row) -> Finding:
    counts = row["transpositions"]
    falls = int((np.diff(counts) < 0).sum())
    return f"0 to {counts[-1]}, {falls} falls", falls == 0 if len(counts) > 1 else None


def _aligned(measure: str, holds: Callable[[float, float], bool]) -> Test:
    """Compare a measure of the Gaussian of HMC's draws as they are with that of aligned draws."""
    words = {RULES[name].row: RULES[name].words for name in ("paper", "mean")}

    def tried(before: Row, after: Row) -> Finding:
        a, b = before[measure], after[measure]
        return f"{a:.3f} to {b:.3f}", holds(b, a)

    return contrast(
        "rows",
        "name",
        [("hmc-qi", row) for row in words],
        tried,
        same=(),
        where=lambda before, after: words[after["name"]],
    )


CLAIMS = (
    Claim(
        "rebasin makes a Gaussian fit easier",
        "(a) p(W|D) has many modes: fitting a parametric model to the samples is difficult. (b) Rebasin makes it "
        "easier.",
        "q_r agrees more with HMC than q_i, and has the lower total variation",
        contrast(
            "rows",
            "name",
            [(f"{source}-qi", f"{source}-qr") for source in ("hmc", "ensemble")],
            _easier,
            same=("group",),
            where=lambda before, after: before["group"],
        ),
    ),
    Claim(
        "one basin: close to unimodal",
        "The quasi-convexity conjecture from prior works suggests that the posterior is close to unimodal once we "
        "remove the permutation degrees of freedom.",
        "aligning shrinks the variance of HMC's draws, beside what it makes of as many draws from the "
        f"prior, below {SHRINKS:g}",
        each(
            lambda frames: read("alignments", frames).known("ratio"),
            _one_basin,
            where=lambda row: RULES[row["rule"]].words,
        ),
    ),
    Claim(
        "rebasin removes barriers, independent initialisation",
        _BARRIER,
        f"less than {REMOVED:g} of the barrier (at least {SMALL:g} nats) between two trained networks is left",
        each("dynamics", _removed, where=lambda row: "at the end of training"),
    ),
    Claim(
        "rebasin removes barriers, permuted initialisation",
        _BARRIER,
        f"less than {REMOVED:g} of the mean barrier over runs (at least {SMALL:g} nats) is left",
        each(
            lambda frames: (row for row in read("swaps", frames) if row["before"]),
            _removed,
            where=lambda row: f"{row['before']} transpositions before training",
        ),
    ),
    Claim(
        "transpositions before training show after it",
        "[The] effect of permuting initial weights by different Number of Transpositions (NoT) on NoT after "
        "training [...].",
        "their mean number after training grows with the number before",
        _grows,
    ),
    Claim(
        "transpositions are monotonic along the line",
        "NoT changes monotonically along the interpolation between two models.",
        "they never fall from one network on the line to the next, in one run",
        each("lines", _monotonic, where=lambda row: f"run {row['run']}"),
    ),
    Claim(
        "rebasin narrows the weights' sds",
        _FIGURE_5,
        "the median sd of a weight over HMC's draws is lower after alignment",
        _aligned("median_sd", lt),
    ),
    Claim(
        "rebasin makes pruning by sd safer",
        _FIGURE_5,
        f"with {KEPT:.0%} of the weights kept, the mean's accuracy is higher after alignment",
        _aligned("kept_accuracy", gt),
    ),
)
