"""Derived quantities that move along with a symmetry: responsibilities, shares, what a component is computed of.

They are computed at random points and at the same points moved. Where a quantity changes and comes out as one of the
ways to move it says, it belongs to the block; without it, aligned draws would be of parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from onebasin.models.symmetry.block import Axes, Block
from onebasin.models.symmetry.blocks import (
    Complement,
    Counterparts,
    Exchangeable,
    Flip,
    Symmetry,
)
from onebasin.models.symmetry.elements import Shapes
from onebasin.models.symmetry.group import Group
from onebasin.stan.home.errors import StanError

from ..contracts.density import ValueDensity
from .changes import Derived, is_close
from .symmetry import Values, moving_parts

POINTS = 4
"""At which derived quantities are computed."""


def with_derived(symmetry: Symmetry, density: ValueDensity, seed: int) -> Symmetry:
    """Return blocks that also move the derived quantities that follow; those of random numbers cannot be told.

    Parameters
    ----------
    symmetry : Symmetry
        Blocks of parameters.
    density : ValueDensity
        Computes derived quantities.
    seed : int
        Of points and elements.
    """
    if not density.derived:
        return symmetry
    points = density.points(POINTS, seed)
    derived = Derived.at(density, points, seed)
    known = {n: v for n, v in derived.values.items() if n not in derived.random}
    shapes = {n: v.shape[1:] for n, v in (points | known).items()}
    return tuple(_with_derived(block, density, points, known, shapes, seed) for block in symmetry)


def _with_derived(
    block: Block[Any],
    density: ValueDensity,
    points: Values,
    known: Values,
    shapes: Shapes,
    seed: int,
) -> Block[Any]:
    part = moving_parts(Group((block,), shapes), np.random.default_rng(seed), POINTS)[0]
    try:
        there = density.derived_at(block.act(points, *part), seed)
    except StanError:
        return block
    changed = [name for name, values in known.items() if not is_close(there[name], values)]
    for name in changed:
        for wider in () if name in block.variables else _ways(block, name, shapes, changed):
            own = {n: known[n] for n in wider.variables if n in known}
            moved = wider.act(own, *part)
            if all(is_close(moved[n], there[n]) for n in own):
                block = wider
                break
    return block


def _ways(block: Block[Any], name: str, shapes: Shapes, changed: list[str]) -> Iterator[Block[Any]]:
    """Blocks that move one quantity more, or two of one shape where two components change places."""
    if isinstance(block, Flip):
        yield Flip((*block.flipped, name), block.complements)
        yield Flip(block.flipped, (*block.complements, name))
    elif isinstance(block, Complement):
        yield Complement((*block.complemented, name))
    elif isinstance(block, Exchangeable | Counterparts):
        size, shape = block.size(shapes), shapes[name]
        places: list[Axes] = [axis for axis, length in enumerate(shape) if length == size]
        places += [(0, 1)] if shape == (size, size) else []
        for axes in places:
            yield _wider(block, axes={name: axes})
            if block.flipped:
                yield _wider(block, axes={name: axes}, flips=(name,))
        if size == 2:
            others = [n for n in changed if n not in (name, *block.variables)]
            pairs = [_wider(block, tuples=((name, n),)) for n in others if shapes[n] == shape]
            yield from pairs if isinstance(block, Counterparts) else ()
            yield _wider(block, complements=(name,))
            yield _wider(block, tuples=((name, f"-{name}"),))
            yield from pairs


def _wider(
    block: Exchangeable | Counterparts,
    axes: Mapping[str, Axes] | None = None,
    flips: tuple[str, ...] = (),
    complements: tuple[str, ...] = (),
    tuples: tuple[tuple[str, ...], ...] = (),
) -> Exchangeable | Counterparts:
    own = block.tuples if isinstance(block, Counterparts) else ()
    along = block.along if isinstance(block, Counterparts) else block.axes
    flips = (*block.flipped, *flips)
    also = ({**along, **(axes or {})}, flips or False, (*block.complements, *complements))
    if own or tuples:
        return Counterparts((*own, *tuples), *also)
    return Exchangeable(*also)
