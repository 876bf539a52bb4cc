"""Symmetries as data: blocks of variables that move together, the group of a symmetry, and its declaration in words.

A symmetry is a tuple of blocks, each a generator of one factor of a group:

- `Exchangeable` permutes interchangeable components, and can flip their signs and complement binary weights;
- `Counterparts` permutes components that are separate parameters, or single positions of one;
- `Rotation` rotates components, such as the factors of a factor model;
- `Rescalable` multiplies incoming axes by a > 0 and outgoing ones by 1 / a; it keeps a network's
  function, hence the likelihood, but not a normal prior on its weights;
- `Complement` maps weights theta to 1 - theta;
- `Flip` changes the signs of whole variables together, of any shapes.

Axes are those of one draw, without chain and draw. A block's `act` moves whole arrays of draws, with the same leading
axes in its element and in the values. `Group` combines blocks into the group that they generate: its elements,
products, inverses and order. `act` gives component i the place of component ``permutation[i]``, then multiplies by the
signs, then by the factors; ``compose(first, then)`` acts like `first` followed by `then`.

A word declares one block on the command line, as variables separated by commas: ``mu,sigma``, ``+-L:1,scale``,
``mu,1-theta``, ``mu1~mu2``, ``@load:1,scores:1``. `read` reads it, `spell` writes it. A block that begins with @ is a
`Rotation`; with complements only, a `Complement`; of whole variables that change sign (a colon without an axis), a
`Flip`; with counterparts (a tilde), or components along with whole variables that change sign, `Counterparts`; any
other is an `Exchangeable`. zsh needs quotes around brackets, as in ``'theta[0]~theta[2]'``. `Rescalable` has no word,
because networks declare it themselves.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from onebasin.base.errors import ArgumentError, ArgumentTypeError
from onebasin.base.text import dotted, parse_json

from .block import SYNTAX as PARTS
from .block import Axes as Axes
from .block import AxisPart as AxisPart
from .block import Block, on_axis, place_in_words
from .block import Place as Place
from .block import axes_of as axes_of
from .block import places_of as places_of
from .elements import Element, Part, Permuted, Shapes
from .exchangeable import MEMBER, Counterparts, Exchangeable
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


def _read(value: Any, inner: bool = False) -> Any:
    """Turn JSON's lists into tuples, and objects in a mapping into parts of axes."""
    if isinstance(value, list):
        return tuple(_read(each, inner=True) for each in value)
    if isinstance(value, dict) and not inner:
        return {name: _read(entry, inner=True) for name, entry in value.items()}
    return AxisPart(**value) if isinstance(value, dict) else value


def wider_blocks(
    block: Block, name: str, shapes: Shapes, changed: Sequence[str]
) -> Iterator[Block]:
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


@dataclass(frozen=True)
class Group:
    """The group of a symmetry.

    It rejects blocks that name a missing variable or axis, axes of unequal length, or an axis that another block
    already moves in the same turn. It also rejects `complements` unless there are two components.
    """

    symmetry: Symmetry  # Its blocks.
    shapes: Shapes
    """Shape of each variable in one draw, perhaps with variables that no block moves."""

    def __post_init__(self) -> None:
        """Check the symmetry against the shapes."""
        for block in self.symmetry:
            block.check(self.shapes)
        taken: dict[tuple[int, str], list[Place]] = {}
        for block in self.symmetry:
            for name, places in block.axes.items():
                others = taken.setdefault((block.turn, name), [])
                for other, place in product(others, places_of(places)):
                    old, new = (on_axis(p, self.shapes[name]) for p in (other, place))
                    if old.axis == new.axis and not old.commutes(new):
                        both = place_in_words(place, name)
                        if other != place:
                            both = f"{place_in_words(other, name)} and {both}, which overlap"
                        raise ArgumentError(
                            f"`symmetry` has two blocks that move {both}. Let only one block move each position."
                        )
                others += places_of(places)
        # One of two blocks has counterparts, and both move the same entries.
        for first, second in combinations(self.symmetry, 2):
            if first.stacked is first and second.stacked is second:
                continue
            marks, more = first.entries(self.shapes), second.entries(self.shapes)
            for name in (n for n in marks if n in more and (marks[n] & more[n]).any()):
                raise ArgumentError(
                    f"Two blocks of `symmetry` move {name}: one by {first.describe()}, the other by "
                    f"{second.describe()}. Combine these blocks into one."
                )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of components of each block (1 for a `Complement`)."""
        return tuple(block.size(self.shapes) for block in self.symmetry)

    @property
    def log_order(self) -> float:
        """Natural logarithm of the number of elements, infinite with a `Rescalable` or a `Rotation`."""
        return sum(block.log_order(size) for block, size in self._sized())

    def identity(self, lead: tuple[int, ...] = ()) -> Element:
        """Return the element that moves nothing."""
        return tuple(block.identity(lead, size) for block, size in self._sized())

    def random(self, rng: np.random.Generator, lead: tuple[int, ...] = ()) -> Element:
        """Draw elements uniformly; factors of a `Rescalable` block are standard log-normal."""
        return tuple(block.random(rng, lead, size) for block, size in self._sized())

    def act(self, element: Element, values: Mapping[str, Any]) -> dict[str, Any]:
        """Move draws (*lead, *event), each by its own element; reject draws that lack a variable of a block."""
        absent = [n for block in self.symmetry for n in block.variables if n not in values]
        if absent:
            raise ArgumentError(
                f"The symmetry moves {', '.join(absent)}, which `values` does not contain; got "
                f"{', '.join(values) or 'no variables'}. Give all variables that move."
            )
        out = dict(values)
        for place in self._in_turn():
            out = self.symmetry[place].act(out, *element[place])
        return out

    def compose(self, first: Element, then: Element) -> Element:
        """Return the element that acts like `first` followed by `then`."""
        return tuple(
            block.compose(a, b, self._permutation_beside(block, then))
            for block, a, b in zip(self.symmetry, first, then, strict=True)
        )

    def inverse(self, element: Element) -> Element:
        """Return the element that undoes this one."""
        inverted: list[Part] = list(element)
        # Scaling is undone at the places after the inverse permutation.
        for place in self._in_turn():
            block = self.symmetry[place]
            other = self._permutation_beside(block, tuple(inverted))
            inverted[place] = block.inverse(element[place], other)
        return tuple(inverted)

    def elements(self) -> Iterator[Element]:
        """Yield every element, beginning with the identity; reject groups of more than 10 million elements."""
        if self.log_order > math.log(1e7):
            raise ArgumentError(
                "The group has too many elements to list (logarithm of the number of elements: "
                f"{self.log_order:.4g}). Draw some of the elements with `random`."
            )
        yield from product(*(block.elements(size) for block, size in self._sized()))

    def _sized(self) -> Iterator[tuple[Block[Any], int]]:
        return zip(self.symmetry, self.sizes, strict=True)

    def _in_turn(self) -> list[int]:
        """Return the indices of the blocks in the order in which they act."""
        return sorted(range(len(self.symmetry)), key=lambda place: self.symmetry[place].turn)

    def _permutation_beside(self, block: Block[Any], element: Element) -> np.ndarray | None:
        """Return the permutation, if any, by which another block moves the same components."""
        for other, part in zip(self.symmetry, element, strict=True):
            if other is not block and other.moved & block.moved and isinstance(part, Permuted):
                return part.permutation
        return None


EXACT = 1e6  # Maximum number of copies that is printed exactly.


def in_words(symmetry: Symmetry) -> str:
    """Describe the moves of a symmetry; empty if it moves nothing."""
    return "; ".join(block.describe() for block in symmetry)


def copies(symmetry: Symmetry, shapes: Shapes) -> str:
    """Report the number of copies that a symmetry makes of every mode; empty if it makes none."""
    moving = equal_modes(symmetry)
    if not moving:
        return ""
    names = variables_of(moving)
    order = Group(moving, {name: shapes[name] for name in names}).log_order
    if math.isinf(order):
        return (
            "a continuum of equal points in place of every mode, because rotations are continuous"
        )
    if order <= math.log(EXACT):
        return f"{round(math.exp(order)):,} equal copies of every mode"
    exponent, rest = divmod(order / math.log(10), 1)
    return f"about {10**rest:.1f} × 10^{exponent:.0f} equal copies of every mode"


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
