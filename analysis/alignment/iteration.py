"""Alignment with a reference that is estimated from the aligned draws themselves.

All draws are matched with one of them, then the mean (or a diagonal Gaussian) of the aligned draws and the
draws' elements are improved in turn, which lowers the total cost at every step: k-means with one
cluster modulo the group, and Stephens's (2000) algorithm for a Gaussian. It ends in a local optimum, so
several draws may be tried as the start; the cheapest end counts. The mean is defined up to one element of
the group, which is fixed so that the first start's components keep the labels they came with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from onebasin.models.symmetry.elements import on_arrays

from .costs import AlignmentReference, Moments, about
from .descent import MatchingProblem, Swept, match, sweep
from .draws import Arrays
from .parts import Parts, bare, move, take
from .solving import of_one_variance


@dataclass(frozen=True, eq=False)
class Iterated:
    """Elements of every draw, the reference they led to, cost by sweep, whether it came to rest.

    `distance` is each draw's squared distance to the reference's mean, where it is known.
    """

    parts: Parts
    reference: AlignmentReference
    trace: tuple[float, ...]
    converged: bool
    distance: np.ndarray | None = None


def iterate(
    problem: MatchingProblem,
    kind: str,
    scales: Mapping[str, float],
    starts: tuple[int, ...],
    *,
    max_sweeps: int,
    restarts: int,
    seed: int,
) -> Iterated:
    """Align draws with their own mean or diagonal Gaussian, from each of some draws, chains in one row.

    The reference is improved at most `max_sweeps` times from each; `restarts` and `seed` are of the first matching, see
    `descent.match`.
    """
    runs = [
        _run(problem, kind, scales, start, max_sweeps, restarts, seed + number)
        for number, start in enumerate(starts)
    ]
    best = runs[0]
    for run in runs[1:]:
        # By more than rounding: two starts that end alike differ in their last digits.
        if run.trace[-1] < best.trace[-1] - 1e-9 * abs(best.trace[-1]):
            best = run
    # Everything is moved by one element, so that the first start keeps the labels that it came with.
    group, symmetry = problem.group, problem.symmetry
    back = group.inverse(take(best.parts, slice(starts[0], starts[0] + 1)))
    every = tuple(on_arrays(p, lambda a: np.repeat(a, problem.features.total, 0)) for p in back)
    names = problem.features.names
    mean = move({n: m[None] for n, m in best.reference.mean.items()}, symmetry, back, names)
    weight = dict(best.reference.weight)
    by_entry = {n: np.asarray(w)[None] for n, w in weight.items() if np.ndim(w)}
    if by_entry:
        weight |= {n: w[0, ...] for n, w in move(by_entry, *bare(symmetry, back), by_entry).items()}
    moved = AlignmentReference(
        {n: m[0, ...] for n, m in mean.items()},
        weight,
        best.reference.offset,
        best.reference.factor,
    )
    return Iterated(group.compose(best.parts, every), moved, best.trace, best.converged)


def _run(
    problem: MatchingProblem,
    kind: str,
    scales: Mapping[str, float],
    start: int,
    max_sweeps: int,
    restarts: int,
    seed: int,
) -> Iterated:
    at = problem.features.read_one(start)
    squares = kind == "gaussian"
    reference, moments = about(at, scales), Moments(at)
    if problem.exact:  # one sweep, which takes in the draws that it has read anyway
        swept = sweep(problem, reference, None, moments=moments, squares=squares)
    else:
        limits = {"max_sweeps": max_sweeps, "restarts": restarts, "seed": seed}
        swept = match(problem, reference, **limits).swept
        moments = _moments(problem, swept, at, squares)
    converged, trace = False, []
    reference = _estimate(problem, moments, kind, scales)
    for _ in range(max_sweeps):
        moments = Moments(at)
        swept = sweep(problem, reference, swept, moments=moments, squares=squares)
        trace.append(float(swept.cost.mean()))
        converged = not swept.moved.any()
        if converged:
            break
        reference = _estimate(problem, moments, kind, scales)
    return Iterated(swept.parts, reference, tuple(trace), converged)


def _moments(
    problem: MatchingProblem, swept: Swept, shift: Mapping[str, np.ndarray], squares: bool
) -> Moments:
    moments = Moments(shift)
    features = problem.features
    for chunk in features.chunks:
        values, parts = features.read(chunk), take(swept.parts, chunk.rows)

        def piece(within: slice, values: Arrays = values, parts: Parts = parts) -> Moments:
            here = {name: v[within] for name, v in values.items()}
            own = Moments(shift)
            aligned = move(here, problem.symmetry, take(parts, within), features.names)
            own.add(aligned, squares=squares)
            return own

        for own in problem.workers.over(chunk.stop - chunk.start, piece):
            moments.merge(own)
    return moments


def _estimate(
    problem: MatchingProblem, moments: Moments, kind: str, scales: Mapping[str, float]
) -> AlignmentReference:
    if kind == "mean":
        return about(moments.mean(), scales)
    return moments.gaussian(scales, of_one_variance(problem.symmetry, problem.features.shapes))
