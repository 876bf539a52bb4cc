"""Symmetries as data: which axes of which variables move together.

A symmetry is a tuple of blocks, each a generator of one factor of a group:

- `Exchangeable` permutes interchangeable components, and can flip their signs and complement binary weights;
- `Counterparts` permutes components that are separate parameters, or single positions of one;
- `Rotation` rotates components, such as the factors of a factor model;
- `Rescalable` multiplies incoming axes by a > 0 and outgoing ones by 1 / a; it keeps a network's
  function, hence the likelihood, but not a normal prior on its weights;
- `Complement` maps weights theta to 1 - theta;
- `Flip` changes the signs of whole variables together, of any shapes.

Axes are those of one draw, without chain and draw. A block's `act` moves whole arrays of draws, with the same leading
axes in its element and in the values. `Group` combines blocks.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from onebasin.base.errors import ArgumentError, ArgumentTypeError
from onebasin.base.text import dotted, parse_json

from .block import Axes as Axes
from .block import AxisPart as AxisPart
from .block import Block
from .block import Place as Place
from .block import axes_of as axes_of
from .block import places_of as places_of
from .elements import Shapes
from .exchangeable import Counterparts, Exchangeable
from .rotation import Rotation
from .scalings_and_signs import Complement, Flip, Rescalable

Symmetry = tuple[Block[Any], ...]

KINDS: dict[str, type[Block[Any]]] = {
    kind.kind: kind for kind in (Exchangeable, Counterparts, Rotation, Rescalable, Complement, Flip)
}
"""Kinds of blocks by their names in JSON."""


def check_blocks(symmetry: Any) -> Symmetry:
    """Return a symmetry as a tuple, with names as in files; reject anything else."""
    if not isinstance(symmetry, tuple | list) or not all(isinstance(b, Block) for b in symmetry):
        raise ArgumentTypeError(
            "`symmetry` must be a tuple of blocks, such as (Exchangeable({'mu': 0, 'sigma': 0}),), or declarations "
            f"such as 'mu,sigma'; got {symmetry!r}."
        )
    return tuple(
        replace(block, **{own.name: dotted(getattr(block, own.name)) for own in fields(block)})
        if any("/" in name for name in block.variables)
        else block
        for block in symmetry
    )


def blocks_of[B: Block[Any]](symmetry: Symmetry, kind: type[B]) -> tuple[B, ...]:
    """Return the blocks of one kind."""
    return tuple(block for block in symmetry if isinstance(block, kind))


def variables_of(symmetry: Sequence[Block[Any]]) -> tuple[str, ...]:
    """Return the variables that the blocks move, each once, in order."""
    return tuple(dict.fromkeys(name for block in symmetry for name in block.variables))


def equal_modes(symmetry: Symmetry) -> Symmetry:
    """Return the blocks that make equal modes: those that keep the density, not only the likelihood."""
    return tuple(block for block in check_blocks(symmetry) if block.keeps_density)


def discrete(symmetry: Symmetry) -> Symmetry:
    """Return the blocks that make equal modes, with only the permutations and signs of rotations."""
    return tuple(block.discrete for block in equal_modes(symmetry))


def to_json(symmetry: Symmetry) -> str:
    """Write a symmetry as JSON text."""
    return json.dumps([{"kind": block.kind, **asdict(block)} for block in symmetry])


def from_json(text: str) -> Symmetry:
    """Read a symmetry from JSON text by `to_json`."""
    try:
        kinds = [(KINDS[fields.pop("kind")], fields) for fields in parse_json(text)]
        return tuple(kind(**{n: _read(v) for n, v in fields.items()}) for kind, fields in kinds)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(
            f"`symmetry` must be the JSON text that `to_json` returns; got {str(text)[:120]!r}."
        ) from error


def _read(value: Any) -> Any:
    """Turn JSON's lists into tuples, and objects in a mapping into parts of axes."""
    if isinstance(value, dict):
        return {name: _place(entry) for name, entry in value.items()}
    return _place(value)


def _place(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_place, value))
    return AxisPart(**value) if isinstance(value, dict) else value


def wider_blocks(
    block: Block[Any], name: str, shapes: Shapes, changed: Sequence[str]
) -> Iterator[Block[Any]]:
    """Yield blocks that move one more variable, in every way, or exchange it with one of those in `changed`."""
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
