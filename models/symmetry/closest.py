"""The element of a symmetry's group that brings one point closest to another.

All elements of a group of up to 1,000 are tried. In a larger group, blocks are assigned in turn by the cost of every
pair of components (Kuhn 1955), until nothing changes. This is exact for blocks that share no variable, if each variable
has one axis of components. Layers of a network share weights, so they start from several elements.

One labelling for every draw by itself: components in order of size, signs positive.

Unlike an alignment, which matches draws with one another, the rule uses only one draw. So it can be used where
draws have to be treated separately: simulation-based calibration labels the truth like any draw.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .block import Block, axes_of
from .blocks import Group, Symmetry, equal_modes, variables_of
from .elements import Element, Part, Permuted, along
from .plain import plain_view
from .rotation import Rotation, varimax

ENUMERATED = 1000  # Maximum number of elements that are all tried.
SWEEPS = 20  # Maximum number of sweeps over blocks that share variables.
STARTS = 10
"""Number of random elements from which several blocks start too, because one start may end in a poor assignment."""

Values = Mapping[str, Any]


def closest(symmetry: Symmetry, values: Values, reference: Values, scale: Values) -> Element:
    """Find the element by which values (*event) come closest to a reference, differences divided by a positive scale.

    The blocks have finitely many elements. If several elements bring them equally close, the first one is returned; the
    identity comes first. The element has no leading axes.
    """
    group = Group(symmetry, {name: np.shape(value) for name, value in values.items()})
    moving = {*variables_of(symmetry)}

    def differences(element: Element) -> dict[str, Any]:
        moved = group.act(element, values)
        return {n: ((moved[n] - reference[n]) / scale[n]) ** 2 for n in moving}

    def cost(element: Element) -> float:
        return float(sum(part.sum() for part in differences(element).values()))

    if group.log_order <= math.log(ENUMERATED):
        return min(group.elements(), key=cost)
    rng = np.random.default_rng(0)
    more = STARTS if len(symmetry) > 1 else 0
    starts = [group.identity(), *(group.random(rng) for _ in range(more))]
    return min((_descended(group, start, differences, cost) for start in starts), key=cost)


def _descended(
    group: Group,
    best: Element,
    differences: Callable[[Element], dict[str, Any]],
    cost: Callable[[Element], float],
) -> Element:
    """Assign one block after the other, from an element, until nothing changes."""
    symmetry = group.symmetry
    for _ in range(SWEEPS):
        before = best
        for place, (block, size) in enumerate(zip(symmetry, group.sizes, strict=True)):
            tried = [
                (*best[:place], part, *best[place + 1 :])
                for part in _candidates(block, size, differences, best, place)
            ]
            best = min((best, *tried), key=cost)
        if best is before:
            break
    return best


def _candidates(
    block: Block[Any],
    size: int,
    differences: Callable[[Element], dict[str, Any]],
    best: Element,
    place: int,
) -> list[Part]:
    """Return candidates for the best part of a block: all parts if there are few, else the assignment of components."""
    if not isinstance(best[place], Permuted) or block.log_order(size) <= math.log(ENUMERATED):
        return list(block.elements(size))
    signs = (1.0, -1.0) if block.flipped else (None,)
    costs = np.empty((len(signs), size, size))
    components = np.arange(size)
    shapes = {n: np.shape(v) for n, v in differences(best).items()}
    view = plain_view((block,), shapes)
    for shift in range(size):
        order = np.roll(components, -shift)  # Component i of the result is component i + shift.
        for number, sign in enumerate(signs):
            part = Permuted(order, None if sign is None else np.full(size, sign))
            parts = view.stack(differences((*best[:place], part, *best[place + 1 :])), 0)
            costs[number, components, order] = sum(
                np.moveaxis(parts[name], axes_of(axes)[0], 0).reshape(size, -1).sum(axis=1)
                for name, axes in view.blocks[0].axes.items()
            )
    order = linear_sum_assignment(costs.min(axis=0))[1]
    if not block.flipped:
        return [Permuted(order)]
    flipped = costs[:, components, order].argmin(axis=0) == 1
    return [Permuted(order, np.where(flipped, -1.0, 1.0))]


def canonical(symmetry: Symmetry, values: Values) -> dict[str, np.ndarray]:
    """Move draws (draw, ...) of the symmetry's variables into the labelling of the rule.

    A block of components is put in the order of the first of its variables that has one number per component (else of
    the first entry of its first variable), after that number's sign has been made positive where signs may change. A
    block of whole variables moves if that makes the first entry of its first variable larger. Loadings that rotate are
    made simple by varimax first. Blocks that do not keep the posterior's density are left out, since its posterior has
    no such labels; variables that no block moves stay as they are.
    """
    out = dict(values)
    for block in sorted(equal_modes(symmetry), key=lambda block: block.turn):
        if isinstance(block, Rotation):
            # Start from principal axes, which do not depend on the rotation of the sampled draws.
            first = axes_of(block.axes[block.loadings])[0] + 1
            front = np.moveaxis(out[block.loadings], first, 1).astype(np.float64)
            loadings = front.reshape(*front.shape[:2], -1)
            axes = np.swapaxes(np.linalg.eigh(loadings @ np.swapaxes(loadings, 1, 2))[1], 1, 2)
            moved = block.act(out, varimax(axes @ loadings) @ axes)
        else:
            moved = out
        view = plain_view((block.discrete,), {n: v.shape[1:] for n, v in moved.items()})
        moved = view.stack(moved, 1)
        (plain,) = view.blocks
        if block.axes:
            name = ordered_by(plain, moved)
            flipped = name in plain.flipped
            key = _number_of_each(plain, name, moved)
            order = np.argsort(np.abs(key) if flipped else key, axis=1)
            signs = None
            if plain.flipped:
                signed = key if flipped else _number_of_each(plain, plain.flipped[0], moved)
                signs = np.where(along(signed, order) < 0, -1.0, 1.0)
            moved = plain.act(moved, order, signs)
        else:  # The block moves as a whole or not at all.
            name = block.variables[0]
            draws = len(moved[name])
            whole = plain.act(moved, np.ones(draws, bool))
            here, there = (each[name].reshape(draws, -1)[:, 0] for each in (moved, whole))
            moved = plain.act(moved, there > here)
        out = view.unstack(moved, 1)
    return out


def ordered_by(block: Block, values: Values) -> str:
    """The variable by whose numbers `canonical` puts a block's components in order; of counterparts their tuple."""
    view = plain_view((block,), {n: v.shape[1:] for n, v in values.items()})
    (plain,), values = view.blocks, view.stack(values, 1)
    single = [name for name in plain.axes if values[name].ndim == 2]
    return (single or list(plain.axes))[0]


def _number_of_each(block: Block, name: str, values: Values) -> np.ndarray:
    """Return the first entry of each component of a variable, (draw, component)."""
    first = axes_of(block.axes[name])[0] + 1
    moved = np.moveaxis(values[name], first, 1)
    return moved.reshape(*moved.shape[:2], -1)[:, :, 0]
