"""Components that are single numbers: the best assignment by order of size, instead of by a matrix of costs.

A component x costs w (x - m)^2 at a place of centre m. With one weight for all places the cheapest assignment gives
the k-th smallest component to the k-th smallest centre: exchanging any two that are in order changes the cost by
2 w (x - x')(m - m') >= 0 (the rearrangement inequality; optimal transport on a line). Where signs may change, the same
holds for absolute values. That is exact for any number of components.

Weights of their own, as the places of a diagonal Gaussian have, break the argument: a wide place may be worth an
exchange. Up to 128 components the assignment problem is then solved as it is anywhere else; beyond, the Gaussian has
one variance for all places of the block, and order is exact again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from onebasin.models.symmetry.blocks import Block, Symmetry
from onebasin.models.symmetry.elements import Permuted, Shapes

from .costs import Reference

MOST_MATCHED = 128
"""Components up to which places have variances of their own."""
Numbers = Float[np.ndarray, "draw component"]
Order = Int[np.ndarray, "draw place"]


def single_numbers(block: Block, shapes: Shapes) -> bool:
    """Whether each component of a block is one number, which no other variable belongs to."""
    return set(block.variables) == set(block.axes) and [len(shapes[n]) for n in block.axes] == [1]


def of_one_variance(symmetry: Symmetry, shapes: Shapes) -> frozenset[str]:
    """Variables that are so many single numbers that a Gaussian has one variance for all of them."""
    blocks = [block for block in symmetry if single_numbers(block, shapes)]
    return frozenset(n for b in blocks for n in b.axes if shapes[n][0] > MOST_MATCHED)


def in_order(
    values: Mapping[str, np.ndarray], block: Block, part: Permuted, reference: Reference
) -> Permuted:
    """Return the best part of an element for draws (draw, component), as `solving.solve` does.

    Parameters
    ----------
    values : mapping of str to array
        Draws of the one variable that the block moves.
    block : Block
        One whose components are single numbers.
    part : Permuted
        Where the draws are, which they leave only for what is cheaper by more than rounding.
    reference : Reference
        What they are matched with; one weight for all places.
    """
    (name,) = block.axes
    mean, draws, flips = reference.mean[name], values[name], name in block.flipped
    sizes, centre = (np.abs(draws), np.abs(mean)) if flips else (draws, mean)
    best = _by_size(sizes, centre, part.permutation)
    if not flips:
        return Permuted(best)
    same = np.take_along_axis(draws, best, axis=1) * mean >= 0
    return Permuted(best, np.where(same, 1.0, -1.0))


def _by_size(sizes: Numbers, centre: Float[np.ndarray, " place"], present: Order) -> Order:
    """Give the k-th smallest component to the k-th smallest place, in draws where that is cheaper than what is."""
    places = np.argsort(centre, kind="stable")
    placed = np.take_along_axis(sizes, present, axis=1)
    open_rows = np.flatnonzero((np.diff(placed[:, places], axis=1) < 0).any(axis=1))
    best = np.empty((len(open_rows), len(places)), np.intp)
    best[:, places] = np.argsort(sizes[open_rows], axis=1)
    before = np.square(placed[open_rows] - centre).sum(axis=1)
    after = np.square(np.take_along_axis(sizes[open_rows], best, axis=1) - centre).sum(axis=1)
    better = after < before - 8 * np.finfo(sizes.dtype).eps * (before + after)
    found = present.copy()
    found[open_rows[better]] = best[better]
    return found
