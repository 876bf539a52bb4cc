"""Read a symmetry from a function that JAX can trace: classes of axes, signs, and why other axes stay.

`read` traces the function, removes unused equations, walks through it twice, for permutations and for signs, and
returns the result in terms of parameters. The symmetry keeps all results of the function: the terms of the log density,
and whether values are in their supports.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal
from jax.interpreters import partial_eval

from ..symmetry.block import AxisPart, Block, Place
from ..symmetry.blocks import Exchangeable, Flip, Symmetry
from ..symmetry.elements import bits, echelon, orthogonal, reduce
from .labels import AxisClass, Label, Leaf, Product, Sum, Unifier, Uniform, Why, leaves, resolve
from .program import Array, Constant, ProgramWalk
from .reductions import RULES

Shapes = Mapping[str, tuple[int, ...]]
NamedPart = tuple[str, AxisPart]


@dataclass(frozen=True)
class ReadClass:
    """Axes that one permutation moves together.

    `signs` are generators, sets of variables whose components along these axes may change sign one by one.
    """

    size: int
    places: Mapping[str, tuple[AxisPart, ...]]
    signs: tuple[tuple[NamedPart, ...], ...] = ()


@dataclass(frozen=True)
class ReadSymmetry:
    """The symmetry of a program.

    Attributes
    ----------
    classes : tuple of ReadClass
        Permutations, with the signs of components.
    flips : tuple of tuple of str
        Generators, sets of variables that change sign as a whole.
    fixed : mapping of (str, int) to Why
        Why an axis of a variable, or all parts of it, stays.
    unknown : tuple of str
        Primitives without a rule.
    """

    classes: tuple[ReadClass, ...]
    flips: tuple[tuple[str, ...], ...]
    fixed: Mapping[tuple[str, int], Why]
    unknown: tuple[str, ...]


def traced(function: Callable, shapes: Shapes, inputs: Any = ()) -> tuple[ClosedJaxpr, list[str]]:
    """Return the program of a function of named arrays, and the names of its results."""
    kind = jax.dtypes.canonicalize_dtype(float)
    given = {name: jax.ShapeDtypeStruct(shape, kind) for name, shape in shapes.items()}
    closed, out = jax.make_jaxpr(function, return_shape=True)(given, *inputs)
    paths = jax.tree_util.tree_flatten_with_path(out)[0]
    return closed, [str(getattr(path[-1], "key", "")) if path else "" for path, _ in paths]


def read(function: Callable[..., Any], shapes: Shapes, inputs: Sequence[Any] = ()) -> ReadSymmetry:
    """Find the axes and signs of named parameters that keep every result of a function.

    `inputs` are its other arguments, trees of arrays of any values.
    """
    closed, names = traced(function, shapes, inputs)
    every = [True] * len(closed.jaxpr.outvars)
    needed, _ = partial_eval.dce_jaxpr(closed.jaxpr, every, instantiate=True)
    consts = [Constant(value) for value in closed.consts]
    order = sorted(shapes)  # JAX's order of a mapping.
    sites = _sites(needed, names)
    walk = ProgramWalk(RULES, Unifier(), sites=sites)
    axes: dict[str, tuple[Label, ...]] = {
        n: tuple(Leaf(AxisClass(size)) if size > 1 else Uniform(size) for size in shapes[n])
        for n in order
    }
    inputs_of: list[Any] = [var.aval for var in needed.invars[len(order) :]]
    others = [aval.shape for aval in inputs_of]
    _walk(walk, needed, consts, [Array(axes[name]) for name in order], others)
    owned = {n: tuple(map(resolve, labels)) for n, labels in axes.items()}
    places = _places(owned)
    fixed = {}
    for name, axis in ((n, axis) for n, labels in owned.items() for axis in range(len(labels))):
        begun = axes[name][axis]
        if isinstance(begun, Leaf):  # It has several components.
            reasons = [leaf.of.why for leaf in leaves(owned[name][axis])]
            if not reasons or any(reasons):
                fixed[name, axis] = next(filter(None, reasons), begun.of.why or Why(""))
    free = [node for node in places if node.why is None]
    flips, signs = _signs(needed, consts, order, owned, others)
    classes = tuple(
        ReadClass(
            node.size,
            {name: tuple(p for n, p in places[node] if n == name) for name, _ in places[node]},
            tuple(signs.get(node, ())),
        )
        for node in free
    )
    return ReadSymmetry(classes, flips, fixed, tuple(walk.unknown))


def _walk(
    walk: ProgramWalk,
    jaxpr: Any,
    consts: Sequence[Constant],
    args: Sequence[Array],
    others: Sequence[tuple[int, ...]],
) -> None:
    """Walk through a program, fixing its other inputs and its results."""
    given = [Array(tuple(walk.fixed(size, "an axis of the inputs") for size in s)) for s in others]
    for result in walk.through(jaxpr, consts, [*args, *given]):
        array = walk.labelled(result)
        walk.plain(array)
        for label in array.labels:
            walk.fix(label, "an axis of the result")


def _sites(jaxpr: Any, names: Sequence[str]) -> dict[int, str]:
    """Return for each equation the only result that needs it, or an empty name."""
    needed: dict[Any, set[str]] = {}
    for var, name in zip(jaxpr.outvars, names, strict=True):
        if not isinstance(var, Literal):
            needed.setdefault(var, set()).add(name)
    found = {}
    for eqn in reversed(jaxpr.eqns):
        own = set().union(*(needed.get(var, set()) for var in eqn.outvars))
        found[id(eqn)] = next(iter(own)) if len(own) == 1 else ""
        for var in eqn.invars:
            if not isinstance(var, Literal):
                needed.setdefault(var, set()).update(own)
    return found


def _places(owned: Mapping[str, Sequence[Label]]) -> dict[AxisClass, list[NamedPart]]:
    """Return the places of each class in the parameters."""
    found: dict[AxisClass, list[NamedPart]] = {}
    for name, labels in owned.items():
        for axis, label in enumerate(labels):
            for leaf, part in _parts(label, axis):
                found.setdefault(leaf.of, []).append((name, part))
    return found


def _parts(label: Label, axis: int) -> Iterator[tuple[Leaf, AxisPart]]:
    """Return the leaves of an axis as parts of it."""

    def visit(
        label: Label, start: int, stride: int, repeats: list[tuple[int, int]]
    ) -> Iterator[tuple[Leaf, AxisPart]]:
        if isinstance(label, Leaf):
            count, period, offsets = _merged(repeats)
            for offset in offsets:
                yield label, AxisPart(axis, start + offset, label.size, stride, count, period)
        elif isinstance(label, Sum):
            for part in label.parts:
                yield from visit(part, start, stride, repeats)
                start += part.size * stride
        elif isinstance(label, Product):
            inner, outer = label.size, 1
            for part in label.parts:
                inner //= part.size
                more = [(outer, stride * part.size * inner)] if outer > 1 else []
                yield from visit(part, start, stride * inner, repeats + more)
                outer *= part.size

    yield from visit(label, 0, 1, [])


def _merged(repeats: Sequence[tuple[int, int]]) -> tuple[int, int, list[int]]:
    """Combine nested repeats into one, and return the offsets of those that cannot be combined."""
    if not repeats:
        return 1, 0, [0]
    *outer, (count, period) = repeats
    offsets = [0]
    for more, step in reversed(outer):
        if step == count * period and len(offsets) == 1:
            count *= more
        else:
            offsets = [at * step + offset for at in range(more) for offset in offsets]
    return count, period, offsets


def _signs(
    jaxpr: Any,
    consts: Sequence[Constant],
    order: Sequence[str],
    owned: Mapping[str, Sequence[Label]],
    others: Sequence[tuple[int, ...]],
) -> tuple[tuple[tuple[str, ...], ...], dict[AxisClass, list[tuple[NamedPart, ...]]]]:
    """Return the generators of signs: of whole variables, and of the components of each class."""
    walk = ProgramWalk(RULES, Unifier(signs=True))
    args = [walk.with_unknowns(Array(tuple(owned[name])), stretches=False) for name in order]
    of: dict[int, tuple[str, AxisPart | None]] = {}
    for name, array in zip(order, args, strict=True):
        of[array.form] = (name, None)
        for axis, label in enumerate(array.labels):
            for leaf, part in _parts(label, axis):
                of[leaf.form] = (name, part)
    _walk(walk, jaxpr, consts, args, others)
    groups: dict[AxisClass | None, list[int]] = {}
    for at, node in enumerate(walk.owner):
        groups.setdefault(node, []).append(at)
    flips: list[tuple[str, ...]] = []
    signs: dict[AxisClass, list[tuple[NamedPart, ...]]] = {}
    for node, unknowns in groups.items():
        place = {bit: at for at, bit in enumerate(unknowns)}
        own = sum(1 << bit for bit in unknowns)
        checks = {check & own for check in walk.on.checks} - {0}
        packed = [sum(1 << place[b] for b in bits(check)) for check in checks]
        free = orthogonal(packed, len(unknowns))
        shown = sum(1 << place[b] for b in unknowns if 1 << b in of)
        for vector in echelon([vector & shown for vector in free]):
            named = [of[1 << unknowns[at]] for at in bits(vector)]
            if node is None:
                flips.append(tuple(name for name, _ in named))
            else:
                signs.setdefault(node, []).append(tuple((n, p) for n, p in named if p is not None))
    return tuple(flips), signs


def place_of(part: AxisPart, shape: Sequence[int]) -> Place:
    """Return the axis if a part covers all of it, or else the part."""
    whole = part.start == 0 and part.stride == part.repeats == 1
    return part.axis if whole and part.count == shape[part.axis] else part


def block_of(each: ReadClass, shapes: Shapes, signs: Sequence[NamedPart] = ()) -> Exchangeable:
    """Return the block of a class, with one set of signs."""
    axes = {}
    for name in (name for name in shapes if name in each.places):
        places = sorted(each.places[name], key=lambda part: (part.axis, part.start))
        own = tuple(place_of(part, shapes[name]) for part in places)
        axes[name] = own if len(own) > 1 else own[0]
    names = tuple(name for name in shapes if any(name == own for own, _ in signs))
    return Exchangeable(axes, set(names) == set(axes) or names or False)


def signs_fit(each: ReadClass, own: Sequence[NamedPart]) -> bool:
    """Check whether a block can express a set of signs: it changes a variable's sign along all axes that it moves."""
    return len(own) == sum(len(each.places[name]) for name in {name for name, _ in own})


def symmetry_of(found: ReadSymmetry, shapes: Shapes) -> Symmetry:
    """Return blocks of all classes, each with the first set of signs that fits, and of signs of whole arrays."""
    blocks: list[Block[Any]] = []
    known: list[int] = []
    place = {name: 1 << at for at, name in enumerate(shapes)}
    for each in found.classes:
        fitting = [own for own in sorted(each.signs, key=len) if signs_fit(each, own)]
        signs = fitting[0] if fitting else ()
        block = block_of(each, shapes, signs)
        blocks.append(block)
        known = echelon([*known, sum(place[name] for name in block.turned(shapes))])
    for own in sorted(found.flips, key=len):
        vector = sum(place[name] for name in own)
        if reduce(vector, known):
            known = echelon([*known, vector])
            blocks.append(Flip(tuple(name for name in shapes if name in own)))
    return tuple(blocks)
