"""Right verdicts, from how a posterior was made and from ArviZ's R-hat and ESS of what has no labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..verdicts.truth import USABLE, Truth, unusable
from .numbers import Draws, quality
from .references import Data, effects

Judge = Callable[[Data, Draws], Truth]

WORSE = ("short", "modes", "funnel", "stuck")


def plain(names: Sequence[str]) -> Judge:
    """No labels, one mode: the number of draws decides."""

    def judge(_: Data, draws: Draws) -> Truth:
        found = quality(*(draws[name] for name in (*names, "lp")))
        if found == "unclear":
            return Truth(("usable", "unusable"), WORSE)
        return USABLE if found == "sound" else unusable(*WORSE)

    return judge


def overlapping(parts: np.ndarray) -> bool:
    """Tell whether components (chain, draw, component) in ascending order overlap, so that sorting makes that order."""
    flat = parts.reshape(-1, parts.shape[-1])
    return bool((np.roll(flat[:, :-1], len(flat) // 2, axis=0) > flat[:, 1:]).mean() > 0.02)


def labelled(
    words: str,
    labelling: Callable[[Draws], np.ndarray],
    sort: Callable[[Draws], Draws],
    *,
    ordered: bool = False,
) -> Judge:
    """Components that are far apart: their order is a draw's labelling, and sorted draws have no labels.

    Where they are not, no draw's labelling is known: label-free quantities can be used, or nothing if draws are few.

    Parameters
    ----------
    words : str
        What moves together.
    labelling : callable
        From draws to one number per draw (chain, draw).
    sort : callable
        From draws to what is identified, draw by draw.
    ordered : bool
        Whether the first of what is sorted has its components in ascending order.
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
    """The same of components that are scalars: labels switch, whether they are moved or refused."""
    of_arrays = labelled("", labelling, sort, ordered=ordered)

    def judge(data: Data, draws: Draws) -> Truth:
        truth = of_arrays(data, draws)
        answers = truth.answers + (("unusable",) if "aligned" in truth.answers else ())
        return Truth(answers, truth.causes, None)

    return judge


def rotating(_: Data, draws: Draws) -> Truth:
    """Loadings turn; what no rotation changes is sound or not."""
    found = quality(draws["common"], draws["noise"], draws["lp"])
    answers = {"sound": ("invariant",), "unclear": ("invariant", "unusable")}
    return Truth(answers.get(found, ("unusable",)), ("labels", *WORSE), None)


def apart(mode: Callable[[Data, Draws], np.ndarray], names: Sequence[str], *causes: str) -> Judge:
    """Modes that are no symmetry: chains in several of them are no sample; chains in one cannot show the others.

    Parameters
    ----------
    mode : callable
        From data and draws to 0 or 1 for each draw (chain, draw).
    names : sequence of str
        What is judged where all chains are in one mode.
    causes : str
        Beside modes, what is as good a first cause.
    """

    def judge(data: Data, draws: Draws) -> Truth:
        share = mode(data, draws).mean(axis=1)
        return unusable("modes", *causes) if np.ptp(share) > 0.9 else plain(names)(data, draws)

    return judge


def funnel(data: Data, draws: Draws) -> Truth:
    """A centred hierarchy: biased where its scale is not that of the exact posterior."""
    exact, log_tau = effects(data, draws, 0)["log_tau"], np.log(draws["tau"])
    bias = abs(log_tau.mean() - exact.mean) / exact.sd
    found = quality(log_tau, draws["mu"], draws["effect"], draws["lp"])
    if found == "unsound" or bias > 0.4:
        return unusable("funnel", "short")
    if found == "sound" and bias < 0.1 and draws["diverging"].sum() < 3:
        return USABLE
    return Truth(("usable", "unusable"), ("funnel", "short"))
