"""Blocks with one variable more, in every way in which a block can move it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .block import Axes, Block
from .blocks import Complement, Counterparts, Exchangeable, Flip
from .elements import Shapes


def wider_blocks(
    block: Block[Any], name: str, shapes: Shapes, changed: Sequence[str]
) -> Iterator[Block[Any]]:
    """Give blocks that move one variable more, or exchange it with one of those that `changed` lists."""
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
            yield _with(block, axes={name: axes})
            if block.flipped:
                yield _with(block, axes={name: axes}, flips=(name,))
        if size == 2:
            others = [n for n in changed if n not in (name, *block.variables)]
            pairs = [_with(block, tuples=((name, n),)) for n in others if shapes[n] == shape]
            yield from pairs if isinstance(block, Counterparts) else ()
            yield _with(block, complements=(name,))
            yield _with(block, tuples=((name, f"-{name}"),))
            yield from pairs


def _with(
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
