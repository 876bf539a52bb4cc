"""Alignment with a reference that is estimated from the aligned draws themselves.

All draws are matched with one of them, then the mean (or a diagonal Gaussian) of the aligned draws and the
draws' elements are improved in turn, which lowers the total cost at every step: k-means with one
cluster modulo the group, and Stephens's (2000) algorithm for a Gaussian. It ends in a local optimum, so
several draws may be tried as the start; the cheapest end counts. The mean is defined up to one element of
the group, which is fixed so that the first start's components keep the labels they came with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from onebasin.models.symmetry.elements import on_arrays

from .costs import AlignmentReference, Moments, about
from .descent import Matched, MatchingProblem, match, sweep
from .draws import Arrays
from .parts import bare, move, take
from .solving import of_one_variance


def iterate(
    problem: MatchingProblem, scales: Mapping[str, float], starts: tuple[int, ...]
) -> Matched:
    """Align draws with their own mean or diagonal Gaussian, from each of some draws, chains in one row."""
    seed = problem.rule.seed
    best, *others = (
        _run(problem, scales, start, seed + number) for number, start in enumerate(starts)
    )
    for run in others:
        # By more than rounding: two starts that end alike differ in their last digits.
        if run.trace[-1] < best.trace[-1] - 1e-9 * abs(best.trace[-1]):
            best = run
    # Everything is moved by one element, so that the first start keeps the labels that it came with.
    group, symmetry, reference = problem.group, problem.symmetry, best.reference
    back = group.inverse(take(best.swept.parts, slice(starts[0], starts[0] + 1)))
    every = tuple(on_arrays(p, lambda a: np.repeat(a, problem.features.total, 0)) for p in back)
    mean = problem.move({n: m[None] for n, m in reference.mean.items()}, back)
    weight = {n: np.asarray(w)[None] for n, w in reference.weight.items() if np.ndim(w)}
    weight = move(weight, *bare(symmetry, back), weight) if weight else {}
    moved = replace(
        reference,
        mean={n: m[0, ...] for n, m in mean.items()},
        weight={**reference.weight, **{n: w[0, ...] for n, w in weight.items()}},
    )
    parts = group.compose(best.swept.parts, every)
    return replace(best, swept=replace(best.swept, parts=parts), reference=moved)


def _run(problem: MatchingProblem, scales: Mapping[str, float], start: int, seed: int) -> Matched:
    at = problem.features.read_one(start)
    squares = problem.rule.reference == "gaussian"
    reference, moments = about(at, scales), Moments(at, squares)
    if problem.exact:  # one sweep, which takes in the draws that it has read anyway
        swept = sweep(problem, reference, None, moments=moments)
    else:
        swept = match(problem, reference, seed).swept

        def aligned(rows: slice, values: Arrays) -> Moments:
            own = Moments(at, squares)
            own.add(problem.move(values, take(swept.parts, rows)))
            return own

        for own in problem.over(problem.features.read, aligned):
            moments.merge(own)
    converged, trace = False, []
    reference = _estimate(problem, moments, scales)
    for _ in range(problem.rule.max_sweeps):
        moments = Moments(at, squares)
        swept = sweep(problem, reference, swept, moments=moments)
        trace.append(float(swept.cost.mean()))
        converged = not swept.moved.any()
        if converged:
            break
        reference = _estimate(problem, moments, scales)
    return Matched(swept, reference, tuple(trace), converged)


def _estimate(
    problem: MatchingProblem, moments: Moments, scales: Mapping[str, float]
) -> AlignmentReference:
    if problem.rule.reference == "mean":
        return about(moments.mean(), scales)
    return moments.gaussian(scales, of_one_variance(problem.symmetry, problem.features.shapes))
