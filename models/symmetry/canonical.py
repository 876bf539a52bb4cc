"""One labelling for every draw by itself: components in order of size, signs positive.

Unlike an alignment, which matches draws with one another, the rule looks at one draw alone. So it may be used where
a draw must not know of others: in simulation-based calibration the truth is labelled as any draw is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .arrays import along
from .block import Block, axes_of
from .blocks import Symmetry, equal_modes
from .elements import Permuted
from .plain import plain_view
from .rotation import Rotation
from .varimax import varimax

Values = Mapping[str, np.ndarray]


def canonical(symmetry: Symmetry, values: Values) -> dict[str, np.ndarray]:
    """Move draws (draw, ...) of the symmetry's variables into the labelling of the rule.

    A block of components is put in the order of the first of its variables that has one number a component (else of the
    first entry of its first variable), after that number's sign has been made positive where signs may change. Of a
    block that is all or nothing, the first entry of its first variable is made the larger one of the two. Loadings that
    rotate are made simple by varimax first. Blocks that do not keep the posterior's density are left out, since its
    posterior has no such labels; variables that no block moves stay as they are.
    """
    out = dict(values)
    for block in sorted(equal_modes(symmetry), key=lambda block: block.turn):
        if isinstance(block, Rotation):
            # From their principal axes, which do not depend on the rotation that the draws came with.
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
            moved = _in_order(plain, moved)
        else:  # it moves as a whole or not at all
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


def _in_order(block: Block, values: Values) -> dict[str, np.ndarray]:
    """Put a block's components in order."""
    name = ordered_by(block, values)
    flipped = name in block.flipped
    key = _number_of_each(block, name, values)
    order = np.argsort(np.abs(key) if flipped else key, axis=1)
    if not block.flipped:
        return block.act(values, *Permuted(order)[:1])
    signed = key if flipped else _number_of_each(block, block.flipped[0], values)
    signs = np.where(along(signed, order) < 0, -1.0, 1.0)
    return block.act(values, *Permuted(order, signs))


def _number_of_each(block: Block, name: str, values: Values) -> np.ndarray:
    """A number of each component, (draw, component): the first that a variable has."""
    first = axes_of(block.axes[name])[0] + 1
    moved = np.moveaxis(values[name], first, 1)
    return moved.reshape(*moved.shape[:2], -1)[:, :, 0]
