"""From posteriors to frames, the paper's statements and the goals: distances of predictions from HMC's, scores, pairs.

Frames: `rows` (one a representation), `floor` (the second half of HMC's chains against the first),
`alignments` (one a rule for HMC's draws), `dynamics` (two networks at the end of training), `swaps` (means over
runs, one a number of transpositions before training) and `lines` (one a run).
"""

import json
from collections.abc import Callable, Iterable, Iterator
from operator import gt, itemgetter, lt
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.analysis.alignment.barriers import Barrier
from onebasin.analysis.predictive.classification import (
    agreement,
    calibration_error,
    entropy,
    total_variation,
)
from onebasin.truth.problems.images import image_split

from ..lab import Claim, Finding, Frame, Frames, Outcomes, Row, Test, Trial, contrast, each, read
from .design import RULES, CompactConfig, Representation, rows
from .making import LAGS, SD_EDGES

KEPT = 0.5
"""Share of weights that are kept where accuracies of pruned networks are compared."""
Scores = dict[str, float]


def measure(config: CompactConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell that succeeded."""
    labels = np.asarray(image_split(config.size, config.seed).test.y, dtype=np.int64)
    every = {row: outcomes.find(row.name, "row") for row in rows(config)}
    trees = {row: tree for row, tree in every.items() if tree is not None}
    probability = {
        row.name: tree["predictive"].dataset["probability"].values for row, tree in trees.items()
    }
    floor = []
    if {"half-1", "half-2"} <= set(probability):
        floor = [score(probability["half-2"][0], probability["half-1"][0], labels)]
    found: dict[str, Iterable[dict[str, Any]]] = {
        "rows": (_row(row, tree, probability["hmc"][0], labels) for row, tree in trees.items()),
        "floor": floor,
        "alignments": (
            _alignment(rule, tree)
            for rule in RULES
            if (tree := outcomes.find("hmc", f"aligned-{rule}")) is not None
        ),
    }
    if (tree := outcomes.find("pair", "dynamics")) is not None:
        pair = tree["dynamics"].to_dataset()
        losses = np.stack([pair[name].values[-1] for name in ("loss_raw", "loss_aligned")])
        raw, moved = Barrier(pair["position"].values, losses).height
        found["dynamics"] = [{"barrier_raw": raw, "barrier_aligned": moved}]
    if (tree := outcomes.find("pair", "swaps")) is not None:
        swaps = tree["swaps"].to_dataset()
        counts = enumerate(swaps["between"].values, start=1)
        lines = [{"run": run, "transpositions": along} for run, along in counts]
        names = ("after", "distance_raw", "distance_aligned", "barrier_raw", "barrier_aligned")
        found |= {
            "swaps": [
                {
                    "before": before,
                    **{name: swaps[name].values[:, place].mean() for name in names},
                    "after_sd": swaps["after"].values[:, place].std(),
                }
                for place, before in enumerate(swaps["before"].values)
            ],
            "lines": lines,
        }
    return {name: Frame.of(filled) for name, filled in found.items()}


def score(
    probability: Float[np.ndarray, "obs out"],
    truth: Float[np.ndarray, "obs out"],
    labels: Int[np.ndarray, " obs"],
) -> Scores:
    """Score one distribution over classes against HMC's and against the labels.

    `agreement` is the share of images with the same most probable class (the paper's equation 1), `total_variation`
    halved, twice this is the paper's equation 2; `log_score` is in nats an image.
    """
    with np.errstate(divide="ignore"):  # a class that was ruled out: minus infinity, and said so
        log_score = float(np.log(probability[np.arange(len(labels)), labels]).mean())
    return {
        "agreement": agreement(probability, truth),
        "total_variation": total_variation(probability, truth, halved=True),
        "accuracy": float((probability.argmax(axis=-1) == labels).mean()),
        "log_score": log_score,
        "calibration_error": calibration_error(probability, labels),
    }


def _row(
    row: Representation, tree: xr.DataTree, truth: np.ndarray, labels: Int[np.ndarray, " obs"]
) -> dict[str, Any]:
    """Score the averaged probabilities (means over repeats) and, as `mean_...`, the network of the mean's weights.

    The mutual information is of class and draw, mean over images, in nats: the entropy of the averaged
    probabilities less the mean entropy of a draw's.
    """
    group = tree["predictive"].to_dataset()
    probability, accuracy = group["probability"].values, group["draw_accuracy"].values
    scores = [score(repeat, truth, labels) for repeat in probability]
    averaged = np.mean([list(repeat.values()) for repeat in scores], axis=0)
    of_mean = score(group["mean_probability"].values, truth, labels)
    median_sd = kept_accuracy = None
    if "spread" in tree.children:  # the median is interpolated within its bin
        share = np.cumsum(tree["spread"].to_dataset()["count"].values)
        median_sd = np.interp(share[-1] / 2, np.concatenate([[0], share]), SD_EDGES)
    if "pruning" in tree.children:  # of the mean with the weights of lowest standard deviation
        found = tree["pruning"].to_dataset()
        kept_accuracy = np.interp(KEPT, found["keep"].values, found["accuracy_sd"].values)
    return {
        "name": row.name,
        "group": row.group,
        "label": row.label,
        "one_basin": row.one_basin,
        **dict(zip(scores[0], averaged, strict=True)),
        **{f"mean_{name}": value for name, value in of_mean.items()},
        "draw_accuracy": accuracy.mean(),
        "draw_accuracy_sd": accuracy.std(),
        "mutual_information": (entropy(probability) - group["entropy"].values).mean(),
        "median_sd": median_sd,
        "kept_accuracy": kept_accuracy,
    }


def _alignment(rule: str, tree: xr.DataTree) -> dict[str, Any]:
    """Take how labels changed, and what was gained; only alignment by weights measures it."""
    found = json.loads(tree.attrs.get("switching", "{}"))
    changed = found.get("reassigned", {})
    names = ("ratio", "noise_ratio", "prior_ratio", "labellings")
    moved = {f"moved_{lag}": changed.get(str(lag)) for lag in LAGS}
    return {"rule": rule, **{name: found.get(name) for name in names}, **moved}


REMOVED = 0.2
"""A barrier counts as removed where less than this share of it is left."""
SMALL = 0.05
"""Nats; a barrier below this was none to begin with."""
SHRINKS = 0.9
"""Draws count as close to one mode where aligning shrinks their spread, relative to that of prior draws, below this."""

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

AGREEMENT_GOAL, VARIATION_GOAL = 0.98, 0.05
"""Goals for one Gaussian: agreement at least, halved total variation at most."""
STRETCH_VARIATION, STRETCH_ACCURACY = 0.025, 0.01
"""And beyond: halved total variation, with a single draw's accuracy within this of HMC's."""
GAIN_GOAL = 1.5
"""By how much the iterated mean's total variation should be below that of one draw as reference."""
GAUSSIANS = ("one Gaussian", "VI")
"""Groups of rows that are one Gaussian each, and may reach the goals."""


def reaches_goal(row: Row) -> bool:
    """Tell whether one Gaussian reaches agreement and total variation that it should."""
    near = row["total_variation"] <= VARIATION_GOAL and row["agreement"] >= AGREEMENT_GOAL
    return near and row["group"] in GAUSSIANS


def reaches_stretch(row: Row, truth: Row) -> bool:
    """Tell whether it also keeps the spread: total variation, and accuracy of a single draw."""
    alike = abs(row["draw_accuracy"] - truth["draw_accuracy"]) <= STRETCH_ACCURACY
    return reaches_goal(row) and row["total_variation"] <= STRETCH_VARIATION and alike


def best_gaussian(rows: Frame, *groups: str) -> Row | None:
    """Find the row of these groups with the lowest total variation."""
    return min(rows.where(group=groups), key=itemgetter("total_variation"), default=None)


def goals(frames: Frames) -> Iterator[Row]:
    """Compare the representations with what was asked of one Gaussian."""
    rows = read("rows", frames)
    if best := best_gaussian(rows, *GAUSSIANS):
        yield {
            "goal": f"agreement at least {AGREEMENT_GOAL:g}, halved total variation at most {VARIATION_GOAL:g}",
            "measured": f"{best['agreement']:.4f} and {best['total_variation']:.4f}, {best['label']}",
            "reached": any(map(reaches_goal, rows)),
        }
        truth = rows.row(name="hmc")
        kept = Frame(tuple(row for row in rows if reaches_stretch(row, truth)))
        shown = best_gaussian(kept, *GAUSSIANS) or best
        gap = shown["draw_accuracy"] - truth["draw_accuracy"]
        yield {
            "goal": f"halved total variation at most {STRETCH_VARIATION:g} with one draw's accuracy within "
            f"{STRETCH_ACCURACY:g} of HMC's",
            "measured": f"{shown['total_variation']:.4f} and {gap:+.4f}, {shown['label']}",
            "reached": bool(kept),
        }
    before, after = (rows.find(name=RULES[rule].row) for rule in ("one-draw", "mean"))
    if before and after:
        gain = before["mean_total_variation"] / after["mean_total_variation"]
        yield {
            "goal": f"the iterated mean's total variation {GAIN_GOAL:g} times below that of one draw as reference",
            "measured": f"{gain:.2f} times",
            "reached": gain >= GAIN_GOAL,
        }
