"""Whether the claims that a verdict makes on a fit hold, where its posterior's moments are known."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from onebasin.analysis.diagnostics.approximations import WeightedDraws, not_carried
from onebasin.analysis.diagnostics.measure import gather, measure
from onebasin.posteriors.pareto import quantiles
from onebasin.posteriors.view import as_view

LIMITS = (0.2, 0.15, 0.15)
"""By how much a mean, a standard deviation and a quantile of a good fit may be off, in standard deviations."""


Moments = dict[str, tuple[float, ...]]
"""Mean, standard deviation, 5 % and 95 % quantile of every entry."""


def moments(draws: Mapping[str, Any], weights: Any = None) -> Moments:
    """Mean, sd and quantiles of every entry of arrays (draw, ...)."""
    out = {}
    for name, values in draws.items():
        array = np.asarray(values, np.float64)
        own = np.full(len(array), 1 / len(array)) if weights is None else weights
        for place in np.ndindex(array.shape[1:]):
            column = array[(slice(None), *place)]
            mean = np.average(column, weights=own)
            sd = np.average((column - mean) ** 2, weights=own) ** 0.5
            entry = name + (f"[{','.join(map(str, place))}]" if place else "")
            out[entry] = mean, sd, *quantiles(column, own)
    return out


def distance(
    found: Moments, wanted: Moments, refused: tuple[Collection[str], ...] = ((), (), ())
) -> tuple[float, float, float]:
    """Largest miss of a mean in sds, an sd as a share and a quantile in sds, but of entries that are refused."""
    varies = {n: m for n, m in wanted.items() if m[1] > 1e-9 * (1 + abs(m[0]))}
    means = [abs(found[n][0] - m[0]) / m[1] for n, m in varies.items() if n not in refused[0]]
    sds = [abs(found[n][1] / m[1] - 1) for n, m in varies.items() if n not in refused[1]]
    ends = [
        abs(found[n][end] - m[end]) / m[1]
        for n, m in varies.items()
        for end in (2, 3)
        if n not in refused[2]
    ]
    return max(means, default=0.0), max(sds, default=0.0), max(ends, default=0.0)


def moments_of(tree: Any) -> Moments:
    """Moments of the weighted draws; of the draws where there are no weights."""
    if "weighted" not in tree.children:
        return moments({n: v.values[0] for n, v in tree["posterior"].data_vars.items()})
    weights = np.exp(tree["variational"]["log_weight"].values)
    return moments(tree["weighted"].data_vars, weights)


def within(missed: tuple[float, float, float]) -> bool:
    """Tell whether the largest misses are small enough."""
    return all(miss <= limit for miss, limit in zip(missed, LIMITS, strict=True))


def misses(
    tree: Any, diagnosis: Any, wanted: Moments
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """The largest misses of a fit, and of those of its numbers that the verdict lets one use: nothing if unusable."""
    found = moments_of(tree)
    missed = distance(found, wanted)
    if diagnosis.verdict == "unusable":
        return missed, (0.0, 0.0, 0.0)
    if diagnosis.verdict != "partly":
        return missed, missed
    view = as_view(tree)
    facts = gather(view, measure(view))
    if (weighted := WeightedDraws.of(facts)) is not None:
        means, sds, ends = not_carried(facts, weighted)
        return missed, distance(found, wanted, (means, {*means, *sds}, ends))
    told = diagnosis.judgement.causes[0].numbers
    named = {*told.get("unknown", ())} | {re.findall("`(.*?)`", t)[0] for t in told.get("off", ())}
    return missed, distance(found, wanted, (named,) * 3)
