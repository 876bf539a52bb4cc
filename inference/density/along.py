"""Derived quantities that move along with a symmetry: responsibilities, shares, what a component is computed of.

They are computed at random points and at the same points moved. Where a quantity changes and comes out as one of the
ways to move it says, it belongs to the block; without it, aligned draws would be of parameters alone.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.group import Group
from onebasin.models.symmetry.wider import wider_blocks
from onebasin.stan.home.errors import StanError

from ..contracts.values import ValueDensity
from .changes import Derived, is_close
from .symmetry import moving_parts

POINTS = 4
"""At which derived quantities are computed."""


def with_derived(symmetry: Symmetry, density: ValueDensity, seed: int) -> Symmetry:
    """Return blocks that also move the derived quantities that follow; those of random numbers cannot be told."""
    if not density.derived:
        return symmetry
    points = density.points(POINTS, seed)
    derived = Derived.at(density, points, seed)
    known = {n: v for n, v in derived.values.items() if n not in derived.random}
    shapes = {n: v.shape[1:] for n, v in (points | known).items()}
    found: Symmetry = ()
    for block in symmetry:
        part = moving_parts(Group((block,), shapes), np.random.default_rng(seed), POINTS)[0]
        changed: list[str] = []
        with suppress(StanError):
            there = density.derived_at(block.act(points, *part), seed)
            changed = [name for name, values in known.items() if not is_close(there[name], values)]
        for name in changed:
            if name in block.variables:
                continue
            for wider in wider_blocks(block, name, shapes, changed):
                own = {n: known[n] for n in wider.variables if n in known}
                moved = wider.act(own, *part)
                if all(is_close(moved[n], there[n]) for n in own):
                    block = wider
                    break
        found += (block,)
    return found
