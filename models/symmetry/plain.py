"""A view of values in which every block moves whole axes of arrays, without counterparts and parts of axes.

In the view, a tuple of counterparts is one array (`Counterparts`). A variable with parts of axes is cut into pieces:
each axis into the positions that belong to the same parts, reshaped to an axis for each part and one for the rest.
Blocks that move factors or slices of an axis are then `Exchangeable` blocks of the pieces. Alignment, invariants, plots
and canonical labels use this view.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .block import Axes, AxisPart, Block, Place, places_of
from .blocks import Complement, Exchangeable, Flip, Rotation, Symmetry
from .elements import Shapes

Values = Mapping[str, Any]


class _Cut(NamedTuple):
    """Some positions of an axis, and the axes that they are split into."""

    word: str
    positions: np.ndarray
    shape: tuple[int, ...]
    places: tuple[Place, ...]
    """The variable's axes or parts that the first axes of `shape` represent."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a variable: a cut of each of its axes."""

    source: str
    cuts: tuple[_Cut, ...]

    @property
    def name(self) -> str:
        """Its name in the view, such as ``kernel:0[2,2,*16]``."""
        return self.source + "".join(cut.word for cut in self.cuts)

    @property
    def axes(self) -> dict[Place, int]:
        """The axis of the piece for each place of the variable."""
        every: list[Place | None] = []
        for cut in self.cuts:
            every += [*cut.places, *[None] * (len(cut.shape) - len(cut.places))]
        return {place: axis for axis, place in enumerate(every) if place is not None}

    def of(self, values: Any, lead: int) -> Any:
        """Take the piece from values (*lead, *event) of the variable."""
        for axis, cut in enumerate(self.cuts, lead):
            if not np.array_equal(cut.positions, np.arange(values.shape[axis])):
                values = values.take(cut.positions, axis=axis)
        return values.reshape(*values.shape[:lead], *(n for cut in self.cuts for n in cut.shape))

    def put(self, values: Any, piece: Any, lead: int) -> Any:
        """Return the variable with its piece replaced."""
        at = [cut.positions for cut in self.cuts]
        piece = piece.reshape(*values.shape[:lead], *map(len, at))
        if not isinstance(values, np.ndarray):
            return values.at[(..., *np.ix_(*at))].set(piece.astype(values.dtype))
        values = values.copy()
        values[(..., *np.ix_(*at))] = piece
        return values


@dataclass(frozen=True, eq=False)
class PlainView:
    """The view for a symmetry: `blocks` are those of `declared` on the arrays added by `stack`."""

    declared: Symmetry
    blocks: Symmetry
    pieces: tuple[Piece, ...] = ()

    def sources(self, name: str) -> tuple[str, ...]:
        """Return the variables that a name of the view represents."""
        found = [piece.source for piece in self.pieces if piece.name == name]
        tied = [n for block in self.declared if (n := block.sources(name)) != (name,)]
        return (found[0],) if found else tied[0] if tied else (name,)

    def stack(self, values: Values, lead: int) -> dict[str, Any]:
        """Add the arrays of the view to values (*lead, *event)."""
        out = dict(values)
        for block in self.declared:
            out = block.stack(out, lead)
        for piece in (piece for piece in self.pieces if piece.source in values):
            out[piece.name] = piece.of(values[piece.source], lead)
        return out

    def unstack(self, values: Values, lead: int) -> dict[str, Any]:
        """Write the arrays of the view back to copies of the variables."""
        own = {piece.name: piece for piece in self.pieces if piece.name in values}
        out = {name: value for name, value in values.items() if name not in own}
        for name, piece in own.items():
            out[piece.source] = piece.put(out[piece.source], values[name], lead)
        for block in self.declared:
            out = block.unstack(out, lead)
        return out


def plain_view(symmetry: Symmetry, shapes: Shapes) -> PlainView:
    """Make the view; `shapes` must have every variable with parts."""
    parts: dict[str, dict[AxisPart, None]] = {}
    for block in symmetry:
        for name, place in ((n, p) for n, ps in block.axes.items() for p in places_of(ps)):
            if isinstance(place, AxisPart):
                parts.setdefault(name, {})[place] = None
    moved = {place for block in symmetry for place in block.moved}
    changed = {name for block in symmetry for name in block.complemented}
    changed |= {name for block in symmetry if not block.axes for name in block.flipped}
    pieces = []
    for name, own in parts.items():
        cuts = [_cut(axis, length, tuple(own)) for axis, length in enumerate(shapes[name])]
        for chosen in product(*cuts):
            piece = Piece(name, chosen)
            if name in changed or any((name, place) in moved for place in piece.axes):
                pieces.append(piece)
    blocks = tuple(_plain(block.stacked, pieces, {*parts}) for block in symmetry)
    return PlainView(tuple(symmetry), blocks, tuple(pieces))


def _cut(axis: int, length: int, parts: tuple[AxisPart, ...]) -> list[_Cut]:
    """Cut an axis into the positions that belong to the same parts."""
    parts = tuple(part for part in parts if part.axis == axis)
    if not parts:
        return [_Cut("", np.arange(length), (length,), (axis,))]
    components = np.stack([part.components(length) for part in parts])
    held, group = np.unique(components >= 0, axis=1, return_inverse=True)
    found = []
    for number, mask in enumerate(held.T):
        own = [part for part, holds in zip(parts, mask, strict=True) if holds]
        positions = np.flatnonzero(group.ravel() == number)
        # Sort by component of the first part, of the second, ..., then by position.
        positions = positions[np.lexsort((positions, *components[mask][:, positions][::-1]))]
        counts = [part.count for part in own]
        rest = len(positions) // prod(counts)
        shape = (*counts, *([rest] if rest > 1 or not own else []))
        word = "".join(f":{part.word}" for part in own) or f":{axis}[rest]"
        found.append(_Cut(word, positions, shape, tuple(own)))
    return found


def _plain(block: Block[Any], pieces: list[Piece], cut: set[str]) -> Block[Any]:
    """Return the block on the pieces of the variables that are cut."""
    if not cut & set(block.variables) or not block.keeps_density:
        return block
    by_name: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_name.setdefault(piece.source, []).append(piece)

    def names(own: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(p for n in own for p in ([e.name for e in by_name[n]] if n in cut else [n]))

    if isinstance(block, Flip):
        return Flip(names(block.flipped), names(block.complements))
    if isinstance(block, Complement):
        return Complement(names(block.complemented))
    axes: dict[str, Axes] = {}
    for name, places in block.axes.items():
        if name not in cut:
            axes[name] = places
        for piece in by_name.get(name, ()):
            own = tuple(piece.axes[place] for place in places_of(places) if place in piece.axes)
            if own:
                axes[piece.name] = own if len(own) > 1 else own[0]
    if isinstance(block, Rotation):
        return Rotation(axes)
    assert isinstance(block, Exchangeable), block
    flips = tuple(name for name in names(block.flipped) if name in axes)
    return replace(block, axes=axes, flips=flips or False, complements=names(block.complements))
