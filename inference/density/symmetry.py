"""Checking a declared symmetry on the target's own log density, before anybody relies on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from onebasin.models.symmetry.blocks import Block
from onebasin.models.symmetry.elements import Element
from onebasin.models.symmetry.group import Group
from onebasin.models.target import Target

from ..engine import engine_named
from ..errors import InferenceError


class SymmetryError(InferenceError):
    """A declared symmetry that the log density does not have.

    Attributes
    ----------
    difference : float
        The largest change of the log density that was measured.
    """

    def __init__(self, message: str, difference: float) -> None:
        super().__init__(message)
        self.difference = difference


@dataclass(frozen=True)
class SymmetryCheck:
    """What was measured.

    Attributes
    ----------
    differences : tuple of float
        For each block, the largest change of the log density by random elements at random points; for a
        `Rescalable` block, of the log likelihood. NaN where the engine cannot tell: Stan does not
        separate the likelihood.
    points : int
        How many points were tried.
    """

    differences: tuple[float, ...]
    points: int


def check_symmetry(
    target: Target,
    *,
    engine: str = "numpyro",
    points: int = 5,
    seed: int = 0,
    tolerance: float = 1e-8,
    progress: Callable[[str], None] | None = None,
) -> SymmetryCheck:
    """Hold a target's declared symmetry against its log density.

    Points are uniform within +-2 in the unconstrained space. Each block is tried alone, by a random
    element for each point; the density is that on the constrained scale, without the Jacobian.

    Parameters
    ----------
    target : Target
        With a symmetry; one without passes.
    engine : "numpyro" or "stan"
        Whose definition is evaluated.
    points : int
        How many points, at least 1.
    seed : int
        Decides points and elements.
    tolerance : float
        Largest change allowed, relative to the larger of 1 and the log density's size.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Returns
    -------
    SymmetryCheck
        The measured changes.

    Raises
    ------
    SymmetryError
        If a block changes the log density; with the change.
    ValueError
        If a block does not fit the target's variables, `engine` is unknown or `points` is not positive.
    """
    density = engine_named(engine).density(target, progress)
    if points < 1:
        raise ValueError(f"`points` is {points}; it has to be 1 or more.")
    values = density.points(points, seed)
    shapes = {name: value.shape[1:] for name, value in values.items()}
    symmetry = tuple(_on_parameters(block, density.derived) for block in target.symmetry)
    group = Group(symmetry, shapes)
    element = group.random(np.random.default_rng(seed), (points,))
    before = cache(lambda measure: measure(values))  # the same for every block
    differences = []
    for place, block in enumerate(symmetry):
        measure: Any = density.log_density if block.keeps_density else density.log_likelihood
        if (here := before(measure)) is None:
            differences.append(float("nan"))
            continue
        moved = group.act(_alone(group, element, place, points), values)
        there = measure(moved)
        difference = float("nan") if there is None else _largest_change(here, there)
        if not difference <= tolerance:  # a NaN is no agreement either
            raise SymmetryError(_refusal(target, block, difference), difference)
        differences.append(difference)
    return SymmetryCheck(tuple(differences), points)


def _on_parameters(block: Block, derived: tuple[str, ...]) -> Block:
    """The block without quantities that follow from the parameters: they move along by themselves."""
    kept = block.restricted(name for name in block.variables if name not in derived)
    return block if kept is None else kept


def _alone(group: Group, element: Element, place: int, points: int) -> Element:
    parts = list(group.identity((points,)))
    parts[place] = element[place]
    return tuple(parts)


def _largest_change(before: np.ndarray, after: np.ndarray) -> float:
    return float(np.max(np.abs(after - before) / np.maximum(1, np.abs(before))))


def _refusal(target: Target, block: Block, difference: float) -> str:
    what = "density" if block.keeps_density else "likelihood"
    return (
        f"`symmetry` of {target.name!r} does not hold: moving {', '.join(block.variables)} as declared "
        f"changes the log {what} by {difference:.3g} of its size at random points. Declare what moves "
        "together completely, or leave this block out."
    )
