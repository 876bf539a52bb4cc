"""All symmetries among the sums of some moves: a space over GF(2), found by linear algebra and held against points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .gf2 import all_sums, echelon, least_basis, reduce
from .measuring import DOUBTFUL, Measured, Probe
from .moves import Generator, Moves
from .pairs import candidates, own_moves

MOST_HALVED = 24
"""Dimensions up to which sums of what fails are searched in halves."""
FEW = 2
"""Points at which supports are looked at."""


@dataclass(frozen=True)
class Space:
    """What a search found.

    Attributes
    ----------
    moves : Moves
        What the bits of the vectors are.
    basis : tuple of int
        Of the symmetries, the lightest.
    doubtful : tuple of int
        Sets whose change is above rounding and so small that it decides nothing.
    complete : bool
        Whether no other symmetry is among the sums.
    """

    moves: Moves
    basis: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Trial:
    """What a set does to the log density: its change at the point where it is most, beside what rounding makes there.

    Attributes
    ----------
    change : float
        In nats; infinite outside the support.
    slack : float
        The change in nats that rounding may make at that point.
    """

    change: float
    slack: float

    @property
    def ratio(self) -> float:
        """The change in tolerances."""
        return self.change / self.slack

    @property
    def holds(self) -> bool:
        """Whether no change is above rounding."""
        return self.ratio <= 1.0

    @property
    def doubtful(self) -> bool:
        """Whether a change is above rounding and too small to decide."""
        return 1.0 < self.ratio <= DOUBTFUL


def trial(moves: Moves, chosen: int, measured: Measured, probes: Sequence[Probe]) -> Trial:
    """Move points by a set and compare, the first point alone first: mostly it decides."""
    found: list[Trial] = []
    for some in (probes[:1], probes[1:]):
        values = measured([moves.act(chosen, probe.point) for probe in some])
        found += [_at(float(value), probe) for value, probe in zip(values, some, strict=True)]
        if worst(found).ratio > DOUBTFUL:
            break
    return worst(found)


def worst(trials: Sequence[Trial]) -> Trial:
    """The one that speaks most against a symmetry."""
    return max(trials, key=lambda each: each.ratio)


def _at(value: float, probe: Probe) -> Trial:
    if not np.isfinite(value):
        return Trial(np.inf, probe.tolerance)
    larger = max(1.0, abs(value) / (1.0 + abs(probe.value)))
    return Trial(abs(value - probe.value), probe.tolerance * larger)


def search(generators: list[Generator], measured: Measured, probes: Sequence[Probe]) -> Space:
    """Find all sums of commuting generators that leave the log density unchanged."""
    moves = own_moves(generators, measured, list(probes[:FEW]))
    if not moves.each:
        return Space(moves)
    within = candidates(moves, measured, probes)
    passing: list[int] = []
    failing: list[int] = []
    doubtful: list[int] = []
    for chosen in least_basis(within, moves.weight):
        found = trial(moves, chosen, measured, probes)
        (passing if found.holds else failing).append(chosen)
        if found.doubtful:
            doubtful.append(chosen)
    if len(failing) > MOST_HALVED:
        return Space(moves, tuple(passing), tuple(doubtful), complete=False)
    more = _in_halves(moves, failing, measured, probes) if len(failing) > 1 else []
    basis = least_basis([*passing, *more], moves.weight)
    return Space(moves, tuple(basis), tuple(doubtful))


def _in_halves(
    moves: Moves, failing: list[int], measured: Measured, probes: Sequence[Probe]
) -> list[int]:
    """The symmetries among sums of sets that are none: A + B is one at x where f(A x) = f(B x)."""
    half = len(failing) // 2
    left, right = all_sums(failing[:half]), all_sums(failing[half:])
    probe = probes[0]
    values = [
        measured([moves.act(int(each), probe.point) for each in side]) for side in (left, right)
    ]
    order = np.argsort(values[1], kind="stable")
    ordered = values[1][order]
    size = 1.0 + np.abs(np.concatenate(values)[np.isfinite(np.concatenate(values))]).max(initial=0)
    slack = 2.0 * probe.tolerance * size / (1.0 + abs(probe.value))
    found: list[int] = []
    for place in np.flatnonzero(np.isfinite(values[0])):
        low, high = np.searchsorted(
            ordered, [values[0][place] - slack, values[0][place] + slack], side="left"
        )
        for at in order[low:high]:
            chosen = int(left[place]) ^ int(right[at])
            new = chosen and reduce(chosen, echelon(found))
            if new and trial(moves, chosen, measured, probes).holds:
                found.append(chosen)
    return found
