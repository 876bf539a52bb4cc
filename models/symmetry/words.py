"""Blocks as words: ``mu,sigma``, ``+-L:1,scale``, ``mu,1-theta``, ``mu1~mu2``, ``@load:1,scores:1``.

A word is one block of variables separated by commas; `read` reads it, `spell` writes it. A block that begins with @ is
a `Rotation`; with complements only, a `Complement`; of whole variables that change sign (a colon without an axis), a
`Flip`; with counterparts (a tilde), or components along with whole variables that change sign, `Counterparts`; any
other is an `Exchangeable`. zsh needs quotes around brackets, as in ``'theta[0]~theta[2]'``. `Rescalable` has no word,
because networks declare it themselves.
"""

import re
from typing import Any, NamedTuple

from onebasin.base.errors import ArgumentError
from onebasin.base.text import dotted

from .block import SYNTAX as PARTS
from .block import Axes, AxisPart, Place, places_of
from .blocks import (
    Block,
    Complement,
    Counterparts,
    Exchangeable,
    Flip,
    Rotation,
    Symmetry,
    check_blocks,
)
from .elements import Shapes
from .exchangeable import MEMBER

_COMMA = re.compile(r",(?![^\[\]]*\])")  # A comma that is not inside brackets.
_PART = re.compile(
    r"(?P<sign>1-|\+-)?(?P<name>(?!1-|\+-|@)[^\s,:~]+)(?P<whole>:$)?(?P<axes>(?::[0-9]+(?:\[[^\[\]]+\])?)*)"
)
_PLACE = re.compile(r":([0-9]+)(?:\[([^\[\]]+)\])?")
_SYNTAX = (
    "Separate variables by commas, as in mu,sigma,theta. Write an axis other than 0 after a colon, as in W1:1 (A:0:1 "
    f"for two axes), and a part of an axis in brackets, as in K:0{PARTS}. Write ~ between separate parameters that are "
    "the same quantity of several components, as in mu1~mu2,sigma1~sigma2,theta, or between positions counted from 0, "
    "as in theta[0]~theta[2]. Write +- before a variable that may change sign, as in +-L:1, and end the names with a "
    "colon if whole variables change sign together, as in +-theta:,+-a:. Write 1- before a variable that becomes its "
    "complement, as in 1-theta. Write @ before a block whose components rotate, with the loadings first, as in "
    "@load:1,scores:1"
)


class _Part(NamedTuple):
    """A variable of a block; it has no axes if it moves as a whole."""

    name: str
    axes: tuple[Place, ...]
    flips: bool
    complement: bool

    @property
    def place(self) -> Axes:
        """Its axis, or its axes."""
        return self.axes if len(self.axes) > 1 else self.axes[0]


def read(word: str) -> Block:
    """Read a block; reject malformed parts, and variables or axes that are named twice.

    Examples are ``W1:1,b1,W2`` (axes), ``A:0:1,mu`` (one permutation on two axes), ``K:0[2,2,*16],b:0[4:8]`` (a factor
    and a slice of axes), ``+-L:1,scale`` (signs of L), ``mu,1-theta`` (a complement along with two parts), ``1-p,1-q``
    (complements only), ``+-theta:,+-a:`` (signs of whole variables), ``mu1~mu2,s1~s2,theta`` (counterparts along with a
    simplex), ``theta[0]~theta[2]`` (positions), ``mu,+-eta:`` (a sign that changes when two parts are exchanged),
    ``@L:1,z:1`` (a rotation).
    """
    word = dotted(word)
    if word.lstrip().startswith("@"):
        parts = [_part(text.strip(), word) for text in word.lstrip()[1:].split(",")]
        turned = {part.name: part.place for part in parts if part.axes}
        if len(turned) < len(parts) or any(part.flips for part in parts):
            raise ArgumentError(
                f"`exchangeable` has the invalid part {word!r}. After @, name every variable once, without 1- or +- "
                f"(rotations include sign changes). {_SYNTAX}."
            )
        return Rotation(turned)
    texts = [text.strip() for text in _COMMA.split(word)]
    tuples: dict[str, tuple[str, ...]] = {}
    for text in (text for text in texts if "~" in text):
        own = tuple(member.strip() for member in text.removeprefix("+-").split("~"))
        if not all(MEMBER.fullmatch(member) for member in own):
            raise ArgumentError(
                f"`exchangeable` has the invalid part {text!r} in {word!r}. {_SYNTAX}."
            )
        tuples[text] = own
    parts = [_part(text, word) for text in texts if "~" not in text]
    names = [part.name for part in parts]
    names += [
        m for own in tuples.values() for m in dict.fromkeys(re.sub("^(1-|-)", "", m) for m in own)
    ]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ArgumentError(
            f"`exchangeable` names {twice} twice in {word!r}. Name every variable once, with all its axes. {_SYNTAX}."
        )
    lengths = {len(own) for own in tuples.values()} | {2 for part in parts if not part.axes}
    if len(lengths) > 1 and tuples:
        raise ArgumentError(
            f"The quantities in {word!r} have different numbers of components ({min(lengths)} and {max(lengths)}). "
            f"Name the same number of components for every quantity. {_SYNTAX}."
        )
    complements = tuple(part.name for part in parts if part.complement)
    whole = tuple(part.name for part in parts if not part.axes and not part.complement)
    moved = [part for part in parts if part.axes]
    axes = {part.name: part.place for part in moved}
    flips = tuple(part.name for part in moved if part.flips)
    if tuples or (moved and whole):
        signed = tuple("~".join(own) for text, own in tuples.items() if text.startswith("+-"))
        apart = (*tuples.values(), *((name, f"-{name}") for name in whole))
        return Counterparts(apart, axes, (*signed, *flips) or False, complements)
    if whole:
        return Flip(whole, complements)
    if not moved:
        return Complement(complements)
    return Exchangeable(axes, len(flips) == len(moved) or flips or False, complements)


def as_symmetry(symmetry: Any, shapes: Shapes | None = None) -> Symmetry:
    """Make a symmetry from blocks, from one declaration, or from one per block; reject anything else.

    The `shapes` of variables in one draw, if given, help to interpret words (`as_meant`).
    """
    words = (symmetry,) if isinstance(symmetry, str) else symmetry
    several = isinstance(words, tuple | list) and bool(words)
    if not several or not all(isinstance(word, str) for word in words):
        blocks, known = check_blocks(symmetry), shapes or {}
        return tuple(b.whole(known) if isinstance(b, Exchangeable) else b for b in blocks)
    try:
        blocks = tuple(read(word) for word in words)
    except ValueError as error:
        raise ArgumentError(str(error).replace("`exchangeable`", "`symmetry`", 1)) from None
    return tuple(as_meant(block, shapes or {}) for block in blocks)


def spell(block: Block) -> str:
    """Write a block as a word; reject kinds without a word, and names that a word cannot contain."""
    if isinstance(block, Rotation):
        return "@" + spell(Exchangeable(block.axes))
    if not isinstance(block, Exchangeable | Counterparts | Complement | Flip):
        raise ArgumentError(
            f"`block` is {block!r}, but `--exchangeable` can declare only blocks of the types Exchangeable, "
            "Counterparts, Complement and Flip."
        )
    members: tuple[str, ...] = ()
    whole = [n for n in block.flipped if n not in block.axes]
    if isinstance(block, Counterparts):
        turned = {n: own for n, own in block.reflected.items() if "[" not in own}
        members = tuple(n for n in block.members if n not in turned)
        whole = list(turned.values())
    texts = ["+-" * (name in block.flipped) + name for name in members]
    parts = {n: "+-" * (n in block.flipped) + n for n in block.axes if "~" not in n}
    for name in parts:
        places = places_of(block.axes[name])
        words = [p.word if isinstance(p, AxisPart) else str(p) for p in places]
        parts[name] += "" if places == (0,) else "".join(f":{word}" for word in words)
    parts |= {name: f"+-{name}:" for name in whole}
    parts |= {name: f"1-{name}" for name in block.complemented}
    for name in parts:
        found = _PART.fullmatch(name)
        if found is None or found["name"] != name:
            raise ArgumentError(
                f"`--exchangeable` cannot name the variable {name!r} of `block`. {_SYNTAX}."
            )
    return ",".join([*texts, *parts.values()])


def in_shell(word: str) -> str:
    """Quote a word with brackets, which are a pattern in zsh."""
    return f"'{word}'" if "[" in word else word


def spelt_options(words: tuple[str, ...]) -> str:
    """Write a declaration of blocks, in Python and on the command line."""
    quoted = [f'"{word}"' for word in words]
    given = quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"
    options = " ".join(f"--exchangeable {in_shell(word)}" for word in words)
    return f"`symmetry={given}` or `{options}`"


def as_meant(block: Block, shapes: Shapes) -> Block:
    """Interpret a block by the shapes of its variables.

    It is a `Flip` of whole variables if all of them may change sign, none has an axis, and their lengths differ or they
    are scalars. Any other block is unchanged.
    """
    block = block.whole(shapes) if isinstance(block, Exchangeable) else block
    signed = set(block.flipped) == set(block.axes) and block.keeps_density
    first = all(places_of(places) == (0,) for places in block.axes.values())
    if not block.axes or not signed or not first or not set(block.axes) <= set(shapes):
        return block
    lengths = {shapes[name][0] if shapes[name] else None for name in block.axes}
    if lengths == {None} or len(lengths) > 1:
        return Flip(tuple(block.axes), block.complemented)
    return block


def _part(text: str, word: str) -> _Part:
    found = _PART.fullmatch(text)
    axes: tuple[Place, ...] = ()
    for axis, inside in _PLACE.findall(found["axes"]) if found else ():
        axes += (AxisPart.read(int(axis), inside) if inside else int(axis),)
    sign, whole = (found["sign"], bool(found["whole"])) if found else (None, False)
    complement = sign == "1-"
    if (
        found is None
        or len(set(axes)) < len(axes)
        or (complement and (axes or whole))
        or (whole and sign != "+-")
    ):
        raise ArgumentError(f"`exchangeable` has the invalid part {text!r} in {word!r}. {_SYNTAX}.")
    none = complement or whole
    return _Part(found["name"], () if none else axes or (0,), sign == "+-", complement)
