"""Correct verdicts, from the construction of a posterior and from ArviZ's R-hat and ESS of label-free quantities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..verdicts.truth import USABLE, Truth, unusable
from .numbers import Draws, quality
from .references import Data, effects

Judge = Callable[[Data, Draws], Truth]

WORSE = ("short", "modes", "funnel", "stuck")


def plain(names: Sequence[str]) -> Judge:
    """Make a judge for unimodal posteriors without labels, whose verdict depends on the number of draws."""

    def judge(_: Data, draws: Draws) -> Truth:
        found = quality(*(draws[name] for name in (*names, "lp")))
        if found == "unclear":
            return Truth(("usable", "unusable"), WORSE)
        return USABLE if found == "sound" else unusable(*WORSE)

    return judge


def overlapping(parts: np.ndarray) -> bool:
    """Return whether components (chain, draw, component) in ascending order overlap, so only sorting orders them."""
    flat = parts.reshape(-1, parts.shape[-1])
    return bool((np.roll(flat[:, :-1], len(flat) // 2, axis=0) > flat[:, 1:]).mean() > 0.02)


def labelled(
    words: str,
    labelling: Callable[[Draws], np.ndarray],
    sort: Callable[[Draws], Draws],
    *,
    ordered: bool = False,
) -> Judge:
    """Make a judge for components so far apart that their order in a draw reveals its labelling.

    If the components overlap, the labelling of a draw is unknown. Then only label-free quantities are usable, or
    nothing if there are few draws.

    Parameters
    ----------
    words : str
        Declaration of the variables that move together.
    labelling : callable
        Function of draws that returns one number per draw (chain, draw).
    sort : callable
        Function of draws that returns identified quantities, draw by draw.
    ordered : bool
        Whether the first sorted variable has its components in ascending order.
    """

    def judge(_: Data, draws: Draws) -> Truth:
        count = np.unique(labelling(draws), return_counts=True)[1]
        switched = 1 - count.max() / count.sum()
        found = quality(*sort(draws).values(), draws["lp"])
        answers: tuple[str, ...] = ("usable",) if switched == 0 else ("aligned",)
        if 0 < switched < 0.02:
            answers = ("aligned", "usable")
        if switched and ordered and overlapping(next(iter(sort(draws).values()))):
            return Truth((*answers, "invariant", "unusable"), ("labels", *WORSE), None)
        if found != "sound":
            answers = ("unusable",) if found == "unsound" else (*answers, "unusable")
            return Truth(answers, ("labels", *WORSE), None)
        return Truth(answers, ("labels",), (words,) if switched >= 0.02 else None)

    return judge


def of_scalars(
    _: str,
    labelling: Callable[[Draws], np.ndarray],
    sort: Callable[[Draws], Draws],
    *,
    ordered: bool = False,
) -> Judge:
    """Make a judge for scalar components with label switching; both alignment and rejection are correct."""
    of_arrays = labelled("", labelling, sort, ordered=ordered)

    def judge(data: Data, draws: Draws) -> Truth:
        truth = of_arrays(data, draws)
        answers = truth.answers + (("unusable",) if "aligned" in truth.answers else ())
        return Truth(answers, truth.causes, None)

    return judge


def rotating(_: Data, draws: Draws) -> Truth:
    """Judge rotating loadings by quantities that no rotation changes."""
    found = quality(draws["common"], draws["noise"], draws["lp"])
    answers = {"sound": ("invariant",), "unclear": ("invariant", "unusable")}
    return Truth(answers.get(found, ("unusable",)), ("labels", *WORSE), None)


def apart(mode: Callable[[Data, Draws], np.ndarray], names: Sequence[str], *causes: str) -> Judge:
    """Make a judge for modes without a symmetry: chains in several modes are unusable, in one undecidable.

    Parameters
    ----------
    mode : callable
        Function of data and draws that returns 0 or 1 for each draw (chain, draw).
    names : sequence of str
        Variables to judge if all chains are in one mode.
    causes : str
        Acceptable first causes in addition to ``modes``.
    """

    def judge(data: Data, draws: Draws) -> Truth:
        share = mode(data, draws).mean(axis=1)
        return unusable("modes", *causes) if np.ptp(share) > 0.9 else plain(names)(data, draws)

    return judge


def funnel(data: Data, draws: Draws) -> Truth:
    """Judge a centred hierarchy, which is biased if its scale differs from the exact posterior."""
    exact, log_tau = effects(data, draws, 0)["log_tau"], np.log(draws["tau"])
    bias = abs(log_tau.mean() - exact.mean) / exact.sd
    found = quality(log_tau, draws["mu"], draws["effect"], draws["lp"])
    if found == "unsound" or bias > 0.4:
        return unusable("funnel", "short")
    if found == "sound" and bias < 0.1 and draws["diverging"].sum() < 3:
        return USABLE
    return Truth(("usable", "unusable"), ("funnel", "short"))
