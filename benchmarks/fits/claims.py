"""Checks of the claims that a verdict makes about a fit, for posteriors with known moments."""

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
"""Largest errors of a mean, a standard deviation and a quantile in a good fit, in standard deviations."""


Moments = dict[str, tuple[float, ...]]
"""Mean, standard deviation, 5 % and 95 % quantile of every entry."""


def moments(draws: Mapping[str, Any], weights: Any = None) -> Moments:
    """Compute the mean, sd and quantiles of every entry of arrays (draw, ...)."""
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


Misses = tuple[list[float], list[float], list[float]]
"""Errors of means (in sds), of sds (relative) and of quantiles (in sds)."""


def each_miss(
    found: Moments, wanted: Moments, refused: tuple[Collection[str], ...] = ((), (), ())
) -> Misses:
    """Compute the errors of all entries except the rejected ones."""
    varies = {n: m for n, m in wanted.items() if m[1] > 1e-9 * (1 + abs(m[0]))}
    means = [abs(found[n][0] - m[0]) / m[1] for n, m in varies.items() if n not in refused[0]]
    sds = [abs(found[n][1] / m[1] - 1) for n, m in varies.items() if n not in refused[1]]
    ends = [
        abs(found[n][end] - m[end]) / m[1]
        for n, m in varies.items()
        for end in (2, 3)
        if n not in refused[2]
    ]
    return means, sds, ends


def moments_of(tree: Any) -> Moments:
    """Return the moments of the weighted draws, or of the draws if there are no weights."""
    if "weighted" not in tree.children:
        return moments({n: v.values[0] for n, v in tree["posterior"].data_vars.items()})
    weights = np.exp(tree["variational"]["log_weight"].values)
    return moments(tree["weighted"].data_vars, weights)


def largest(missed: Misses) -> list[float]:
    """Return the largest errors of a mean, an sd and a quantile."""
    return [max(some, default=0.0) for some in missed]


def too_large(missed: Misses) -> list[int]:
    """Count the means, sds and quantiles whose errors exceed the limits of a good fit."""
    pairs = zip(missed, LIMITS, strict=True)
    return [sum(not miss <= limit for miss in some) for some, limit in pairs]


def misses(tree: Any, diagnosis: Any, wanted: Moments) -> tuple[Misses, Misses]:
    """Return the errors of a fit, and the errors of the numbers that its verdict permits.

    An ``unusable`` posterior permits no numbers. An ``invariant`` posterior permits no labelled entries, so it has none
    either.
    """
    found = moments_of(tree)
    missed = each_miss(found, wanted)
    if diagnosis.verdict in ("unusable", "invariant"):
        return missed, ([], [], [])
    if diagnosis.verdict != "partly":
        return missed, missed
    view = as_view(tree)
    facts = gather(view, measure(view))
    if (weighted := WeightedDraws.of(facts)) is not None:
        means, sds, ends = not_carried(facts, weighted)
        return missed, each_miss(found, wanted, (means, {*means, *sds}, ends))
    named = {*re.findall("`(.*?)`", diagnosis.judgement.causes[0].fact)}
    return missed, each_miss(found, wanted, (named,) * 3)
