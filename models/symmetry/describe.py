"""A symmetry in words for a person: what moves, and how many copies of a mode that makes."""

from __future__ import annotations

import math

from .blocks import Symmetry, equal_modes
from .elements import Shapes
from .group import Group

EXACT = 1e6
"""Largest number of copies that is written out."""


def in_words(symmetry: Symmetry) -> str:
    """Say what a symmetry moves; empty where it moves nothing."""
    return "; ".join(block.describe() for block in symmetry)


def copies(symmetry: Symmetry, shapes: Shapes) -> str:
    """Say how many copies a symmetry makes of every mode; empty where it makes none."""
    moving = equal_modes(symmetry)
    if not moving:
        return ""
    names = {name for block in moving for name in block.variables}
    order = Group(moving, {name: shapes[name] for name in names}).log_order
    if math.isinf(order):
        return "a continuum of equal points, which rotations make of every mode"
    if order <= math.log(EXACT):
        return f"{round(math.exp(order)):,} equal copies of every mode"
    exponent, rest = divmod(order / math.log(10), 1)
    return f"about {10**rest:.1f} × 10^{exponent:.0f} equal copies of every mode"
