"""`find_symmetry`: the discrete symmetries of a target, found from its log density."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from . import parts, separate, wholes
from .context import Search
from .measuring import Measured, Probe, SearchedDensity, point_of
from .points import random_probes
from .result import FoundSymmetry

EVALUATIONS, SECONDS = 100_000, 8.0
"""What a search may take."""
FIRST = ("live", "near", "undecided", "incomplete", "harmless")


def find(
    density: SearchedDensity,
    *,
    draws: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    evaluations: int = EVALUATIONS,
    seconds: float = SECONDS,
    noise: float = 0.0,
) -> FoundSymmetry:
    """Search a log density; `find_symmetry` says what comes of it.

    Parameters
    ----------
    density : SearchedDensity
        What is searched.
    draws : mapping of str to array (point, ...), optional
        Draws of the posterior.
    seed : int
        Of random points.
    evaluations, seconds : int, float
        What it may take; what is not searched then is said.
    noise : float
        Relative error of the log density beyond rounding.

    Raises
    ------
    InferenceError
        If the log density is finite nowhere, or another at the same point.
    """
    measured = Measured(density, evaluations, seconds, noise)
    if not density.shapes:
        return FoundSymmetry((), (), 0, 0.0)
    probes = random_probes(measured, seed)
    s = Search(measured, probes, _given(measured, draws), seed)
    for length, axes in s.lengths.items():
        s.stage(f"axes of length {length}", partial(parts.interchangeable, s, length, axes))
    for length, axes in s.lengths.items():
        s.stage(f"signs of {length} parts", partial(parts.signs, s, length, axes))
    s.stage("signs and complements of whole variables", lambda: wholes.whole_variables(s))
    s.stage("swaps with changes of sign", lambda: wholes.mixed(s))
    for length in (*s.lengths, 0):
        s.stage("near symmetries", partial(wholes.nearly, s, length))
    for length, axes in s.lengths.items():
        if length in s.spaces:
            s.stage(f"some of {length} parts", partial(parts.partly, s, length, axes))
    s.stage("parts within groups", lambda: parts.by_group(s))
    s.stage("parameters declared one by one", lambda: separate.exchanged(s))
    blocks = sorted(s.found, key=lambda block: FIRST.index(block.status))
    opened = tuple(dict.fromkeys(s.open))
    return FoundSymmetry(tuple(blocks), opened, measured.count, measured.spent)


def _given(measured: Measured, draws: Mapping[str, np.ndarray] | None) -> list[Probe]:
    if not draws:
        return []
    count = len(next(iter(draws.values())))
    points = [point_of(draws, row) for row in range(count)]
    return [probe for probe in measured.probes(points) if probe.known]
