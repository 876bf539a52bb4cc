"""Which estimator trains the information: "auto" resolved, and what does not fit refused."""

from __future__ import annotations

import math

from onebasin.base.checks import choose
from onebasin.base.errors import ArgumentError

from ..mutual_information.permanent import check_size
from .families.base import Family
from .layout import Layout
from .settings import CHOICES
from .term import MAX_ELEMENTS, MAX_EXACT


def choose_estimator(name: str, family: Family, layout: Layout) -> str:
    """Resolve "auto", and refuse what does not fit.

    Raises
    ------
    ValueError
        If the word is unknown, or the estimator needs parts that are independent, or fewer parts.
    """
    choose("mutual_information", name, CHOICES)
    by_parts = layout.has_parts and family.factorises
    few = layout.log_order <= math.log(MAX_ELEMENTS) + 1e-9
    if name == "auto":
        small = max(block.size for block in layout.blocks) <= MAX_EXACT
        return ("exact" if small else "fractional") if by_parts else ("exact" if few else "infonce")
    if name == "exact":
        _check_exact(layout, by_parts, few)
    elif name not in ("none", "infonce") and not by_parts:
        raise ArgumentError(
            f"`mutual_information` is {name!r}, which needs parts that are independent under q; this family or "
            "symmetry couples them. Use 'infonce', or family='meanfield'."
        )
    return name


def check_permutations(name: str, permutations: int) -> None:
    """Refuse InfoNCE with the identity alone.

    Raises
    ------
    ValueError
        If K is below 2.
    """
    if name == "infonce" and permutations < 2:
        raise ArgumentError(
            f"`permutations` is {permutations}; InfoNCE needs 2 or more, the identity included: with one it is zero."
        )


def _check_exact(layout: Layout, by_parts: bool, few: bool) -> None:
    if by_parts:
        for block in layout.blocks:
            check_size(block.size)
    elif not few:
        raise ArgumentError(
            f"`mutual_information` is 'exact', but this family or symmetry couples the parts, and the group has more "
            f"than {MAX_ELEMENTS} elements to go through. Use 'infonce', or family='meanfield'."
        )
