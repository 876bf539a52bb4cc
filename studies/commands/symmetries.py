"""Symmetries as words of the command line: ``mu,sigma,theta``, ``+-L:1,scale``, ``mu,sigma,1-theta``.

Convention: a word is one block, variables separated by commas; `parse_exchangeable` reads words, `spell` writes
them. A block of complements alone is a `Complement`, any other an `Exchangeable`. No shell reads a meaning into
these signs (a tilde, the usual sign of a change of sign, zsh would take for a pattern). `Rescalable` has no word: it is
a symmetry of a network's likelihood alone, and networks declare it themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..errors import StudyError

if TYPE_CHECKING:  # brings JAX along, which help texts do without
    from onebasin.models.symmetry.blocks import Block, Symmetry

HELP = (
    "Variables whose parts are interchangeable: mu,sigma,theta; by another axis than 0: W1:1,b1,W2; by two axes: "
    "A:0:1,mu; +- before those that may change sign: +-L:1,scale; 1- before weights that become their complements: "
    "mu,sigma,1-theta. Repeatable, a block each time."
)

_PART = re.compile(r"(?P<sign>1-|\+-)?(?P<name>(?!1-|\+-)[^\s,:]+)(?P<axes>(?::[0-9]+)*)")
_SYNTAX = (
    "write variables separated by commas, such as mu,sigma,theta; after a colon the axis where it is not 0, "
    "such as W1:1, or A:0:1 for two; +- before a variable that may change sign, such as +-L:1; 1- before one that "
    "becomes its complement, such as 1-theta"
)


class _Part(NamedTuple):
    """One variable of a block."""

    name: str
    axes: tuple[int, ...]
    flips: bool
    complement: bool


def parse_exchangeable(words: Sequence[str]) -> Symmetry:
    """Read blocks, one a word.

    Parameters
    ----------
    words : sequence of str
        Such as ``W1:1,b1,W2`` (axes), ``A:0:1,mu`` (one permutation on two axes), ``+-L:1,scale`` (signs of L),
        ``mu,1-theta`` (a complement along with two parts), ``1-p,1-q`` (complements alone).

    Returns
    -------
    Symmetry
        An `Exchangeable` or `Complement` a word, in the same order.

    Raises
    ------
    StudyError
        If a part cannot be read, or a block names a variable or an axis twice.
    """
    return tuple(_block(word) for word in words)


def spell(block: Block) -> str:
    """Write a block as `parse_exchangeable` reads it.

    Raises
    ------
    StudyError
        If it is a `Rescalable` block, for which there is no word, or holds a name that no word can.
    """
    from onebasin.models.symmetry.blocks import axes_of

    parts = [_Part(n, axes_of(a), n in block.flipped, False) for n, a in block.axes.items()]
    parts += [_Part(name, (), False, True) for name in block.complemented]
    if not block.keeps_density:
        raise StudyError(f"`block` is {block!r}, which the command line has no word for.")
    for part in parts:
        found = _PART.fullmatch(part.name)
        if found is None or found["name"] != part.name:
            raise StudyError(
                f"`block` names {part.name!r}, which the command line cannot spell: {_SYNTAX}."
            )
    return ",".join(_spell_part(part) for part in parts)


def _spell_part(part: _Part) -> str:
    axes = "" if part.axes in ((), (0,)) else "".join(f":{axis}" for axis in part.axes)
    return "1-" * part.complement + "+-" * part.flips + part.name + axes


def _block(word: str) -> Block:
    from onebasin.models.symmetry.blocks import Complement, Exchangeable

    parts = _parts(word)
    names = [part.name for part in parts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise StudyError(
            f"`--exchangeable` has {twice} twice in {word!r}; name every variable once, with all its axes: {_SYNTAX}."
        )
    complements = tuple(part.name for part in parts if part.complement)
    moved = [part for part in parts if not part.complement]
    if not moved:
        return Complement(complements)
    axes = {part.name: part.axes if len(part.axes) > 1 else part.axes[0] for part in moved}
    flips = tuple(part.name for part in moved if part.flips)
    return Exchangeable(axes, len(flips) == len(moved) or flips or False, complements)


def _parts(word: str) -> list[_Part]:
    return [_part(text.strip(), word) for text in word.split(",")]


def _part(text: str, word: str) -> _Part:
    found = _PART.fullmatch(text)
    axes = tuple(int(axis) for axis in found["axes"].split(":")[1:]) if found else ()
    complement = bool(found and found["sign"] == "1-")
    if found is None or len(set(axes)) < len(axes) or (complement and axes):
        raise StudyError(f"`--exchangeable` has the part {text!r} in {word!r}; {_SYNTAX}.")
    return _Part(found["name"], axes or (0,), found["sign"] == "+-", complement)
