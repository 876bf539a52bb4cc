"""The paper's statements beside what was measured; every verdict follows from numbers by a rule."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from onebasin.analysis.alignment.barriers import Barrier

from ..lab.claims import Statement, Trial, judge
from .measures import Results
from .rows import SD_EDGES
from .tables import RULES

REMOVED = 0.2
"""A barrier counts as removed where less than this share of it is left."""
SMALL = 0.05
"""Nats; a barrier below this was none to begin with."""
SHRINKS = 0.9
"""Draws count as close to one mode where aligning shrinks their spread, beside that of prior draws, below this."""
KEPT = 0.5
"""Share of weights that are kept where accuracies of pruned networks are compared."""

_BARRIER = "Rebasin (Ainsworth, 2023) removes the loss barriers."
_MONOTONIC = "NoT changes monotonically along the interpolation between two models."
_EFFECT = (
    "[The] effect of permuting initial weights by different Number of Transpositions (NoT) on NoT after "
    "training [...]."
)
_CONJECTURE = (
    "The quasi-convexity conjecture from prior works suggests that the posterior is close to unimodal once we "
    "remove the permutation degrees of freedom."
)
_EASIER = (
    "(a) p(W|D) has many modes: fitting a parametric model to the samples is difficult. (b) Rebasin makes it "
    "easier."
)
_FIGURE_5 = (
    "Histograms of the standard deviation of weights before and after rebasin. [...] Test accuracy vs. various "
    "levels of weight pruning (retaining only weights with lowest sd)."
)


def statements(results: Results) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    return (
        _statement(
            "rebasin makes a Gaussian fit easier",
            _EASIER,
            "q_r agrees more with HMC than q_i, and has the lower total variation",
            _easier(results),
        ),
        _statement(
            "one basin: close to unimodal",
            _CONJECTURE,
            "aligning shrinks the variance of HMC's draws, beside what it makes of as many draws from the "
            f"prior, below {SHRINKS:g}",
            _one_basin(results),
        ),
        _statement(
            "rebasin removes barriers, independent initialisation",
            _BARRIER,
            f"less than {REMOVED:g} of the barrier (at least {SMALL:g} nats) between two trained networks is left",
            _dynamics(results),
        ),
        _statement(
            "rebasin removes barriers, permuted initialisation",
            _BARRIER,
            f"less than {REMOVED:g} of the mean barrier over runs (at least {SMALL:g} nats) is left",
            _swaps(results),
        ),
        _statement(
            "transpositions before training show after it",
            _EFFECT,
            "their mean number after training grows with the number before",
            _effect(results),
        ),
        _statement(
            "transpositions are monotonic along the line",
            _MONOTONIC,
            "they never fall from one network on the line to the next, in one run",
            _monotonic(results),
        ),
        _statement(
            "rebasin narrows the weights' sds",
            _FIGURE_5,
            "the median sd of a weight over HMC's draws is lower after alignment",
            _narrower(results),
        ),
        _statement(
            "rebasin makes pruning by sd safer",
            _FIGURE_5,
            f"with {KEPT:.0%} of the weights kept, the mean's accuracy is higher after alignment",
            _pruning(results),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: Iterable[Trial]) -> Statement:
    found = tuple(trials)
    return Statement(label, quote, rule, found, judge([trial.holds for trial in found]))


def _easier(results: Results) -> Iterable[Trial]:
    for name, words in (("hmc", "HMC"), ("ensemble", "ensemble")):
        before, after = (results.measured.get(f"{name}-{q}") for q in ("qi", "qr"))
        if before and after:
            a, b = before.averaged, after.averaged
            holds = b.agreement > a.agreement and b.total_variation < a.total_variation
            measured = (
                f"agreement {a.agreement:.3f} to {b.agreement:.3f}, total variation "
                f"{a.total_variation:.3f} to {b.total_variation:.3f}"
            )
            yield Trial(words, measured, holds)


def _one_basin(results: Results) -> Iterable[Trial]:
    for rule, found in results.switching.items():
        share = found["ratio"] / found["prior_ratio"]
        measured = f"{found['ratio']:.3f} of the variance is left, of prior draws {found['prior_ratio']:.3f}"
        yield Trial(RULES[rule], measured, share < SHRINKS)


def _dynamics(results: Results) -> Iterable[Trial]:
    if "dynamics" not in results.trees:
        return
    found = results.trees["dynamics"]["dynamics"].to_dataset()
    losses = np.stack([found[name].values[-1] for name in ("loss_raw", "loss_aligned")])
    yield _barrier_trial(
        "at the end of training", *Barrier(found["position"].values, losses).height
    )


def _swaps(results: Results) -> Iterable[Trial]:
    if "swaps" not in results.trees:
        return
    found = results.trees["swaps"]["swaps"].to_dataset()
    for k, before in enumerate(found["before"].values):
        if before:
            heights = [float(found[f"barrier_{w}"].values[:, k].mean()) for w in ("raw", "aligned")]
            yield _barrier_trial(f"{before} transpositions before training", *heights)


def _barrier_trial(where: str, raw: float, aligned: float) -> Trial:
    holds = aligned < REMOVED * raw if raw >= SMALL else None
    return Trial(where, f"{raw:.3f} to {aligned:.3f} nats", holds)


def _effect(results: Results) -> Iterable[Trial]:
    if "swaps" not in results.trees:
        return
    found = results.trees["swaps"]["swaps"].to_dataset()
    after = found["after"].values.mean(axis=0)
    words = ", ".join(f"{b} to {a:.1f}" for b, a in zip(found["before"].values, after, strict=True))
    yield Trial("means over runs", words, bool((np.diff(after) > 0).all()))


def _monotonic(results: Results) -> Iterable[Trial]:
    if "swaps" not in results.trees:
        return
    between = results.trees["swaps"]["swaps"].to_dataset()["between"].values
    for run, counts in enumerate(between, start=1):
        falls = int((np.diff(counts) < 0).sum())
        yield Trial(f"run {run}", f"0 to {counts[-1]}, {falls} falls", falls == 0)


def _narrower(results: Results) -> Iterable[Trial]:
    before = _median_sd(results, "hmc-qi")
    for name, words in (("hmc-qr", RULES["paper"]), ("mean-diag", RULES["mean"])):
        after = _median_sd(results, name)
        if before is not None and after is not None:
            yield Trial(words, f"{before:.3f} to {after:.3f}", after < before)


def _median_sd(results: Results, name: str) -> float | None:
    """Median of the counted standard deviations, interpolated within its bin."""
    if name not in results.trees or "spread" not in results.trees[name].children:
        return None
    share = np.cumsum(results.trees[name]["spread"].to_dataset()["count"].values)
    return float(np.interp(share[-1] / 2, np.concatenate([[0], share]), SD_EDGES))


def _pruning(results: Results) -> Iterable[Trial]:
    before = _kept_accuracy(results, "hmc-qi")
    for name, words in (("hmc-qr", RULES["paper"]), ("mean-diag", RULES["mean"])):
        after = _kept_accuracy(results, name)
        if before is not None and after is not None:
            yield Trial(words, f"{before:.3f} to {after:.3f}", after > before)


def _kept_accuracy(results: Results, name: str) -> float | None:
    if name not in results.trees or "pruning" not in results.trees[name].children:
        return None
    found = results.trees[name]["pruning"].to_dataset()
    return float(np.interp(KEPT, found["keep"].values, found["accuracy_sd"].values))
