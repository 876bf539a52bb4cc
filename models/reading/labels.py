"""Labels of axes: how an array moves along each of its axes when the classes of a program are permuted.

A *class* is a set of axes of equal length that one permutation moves together. Every axis of every array in a program
carries a label:

- `Leaf`: the array is permuted along this axis as its class is, or stays, where the class is fixed for a reason;
- `Uniform`: the array is constant along the axis, so that every permutation leaves it as it is;
- `Product`: several labels merged by `reshape`, in row-major order;
- `Sum`: several labels one after the other, as `concatenate` puts them;
- `Strand`: one axis of an array whose axes were merged and split without common factors, or whose entries were taken
  in another order. Its entries are those of the former array in some order, each equally often, so that functions of
  entries and totals over all of its axes still know no order.

Labels are unified like terms of a logic program: two axes that an equation ties together get one label, and a class
that turns out to be a product or a sum is *bound* to it, wherever it occurs.

A leaf also carries a form over GF(2): whether the array changes its sign with the components of the class, one by one.
Forms are integers with one bit per unknown sign. The first walk through a program leaves them at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate


@dataclass(frozen=True)
class Why:
    """The reason why an axis is fixed: an operation or a constant, and the site of the model with its term."""

    what: str
    site: str = ""


@dataclass(eq=False)
class AxisClass:
    """Axes with `size` components that move together, a node of a union-find forest."""

    size: int
    bound: Label | None = None  # The class, product or sum that it is bound to.
    why: Why | None = None  # Why no permutation but the identity is allowed.


@dataclass(frozen=True)
class Uniform:
    """The array is constant along the axis."""

    size: int


@dataclass(frozen=True, eq=False)
class Leaf:
    """An array that moves with a class; `form` encodes the unknown signs that change with its components."""

    of: AxisClass
    form: int = 0

    @property
    def size(self) -> int:
        """The number of components."""
        return self.of.size


@dataclass(frozen=True, eq=False)
class Product:
    """Merged axes, the last one fastest."""

    parts: tuple[Label, ...]

    @property
    def size(self) -> int:
        """The length of the merged axis."""
        return math.prod(part.size for part in self.parts)


@dataclass(frozen=True, eq=False)
class Sum:
    """Concatenated axes; `forms` say by which unknowns the array changes sign in each, relative to the first."""

    parts: tuple[Label, ...]
    forms: tuple[int, ...]

    @property
    def size(self) -> int:
        """The length of the concatenated axis."""
        return sum(part.size for part in self.parts)


@dataclass(eq=False)
class Tangle:
    """The labels of axes before they were merged and split without common factors, or put in another order."""

    before: tuple[Label, ...]
    sizes: tuple[int, ...]
    settle: Callable[[], Sequence[Label]] | None = None
    """Gives the labels of the new axes, once some order counts; without it, the array is fixed."""
    fixed: dict[int, Label] = field(default_factory=dict)
    """The label of each new axis, once some order counts."""


@dataclass(frozen=True, eq=False)
class Strand:
    """One axis of an array whose axes were merged, split or reordered (a `Tangle`)."""

    of: Tangle
    axis: int
    size: int


Label = Uniform | Leaf | Product | Sum | Strand


def product(parts: Iterable[Label]) -> Label:
    """Merge labels; drop those with one component, and combine neighbours that are uniform."""
    flat: list[Label] = []
    for part in parts:
        for each in part.parts if isinstance(part, Product) else (part,):
            if each.size == 1:
                continue
            if flat and isinstance(each, Uniform) and isinstance(flat[-1], Uniform):
                flat[-1] = Uniform(flat[-1].size * each.size)
            else:
                flat.append(each)
    return flat[0] if len(flat) == 1 else Product(tuple(flat)) if flat else Uniform(1)


Piece = tuple[Label, int]  # A stretch of an axis, and the form of the array there.


def concatenated(pieces: Iterable[Piece]) -> Piece:
    """Concatenate stretches of an axis; return the label, and the form of the array in the first stretch."""
    flat: list[Piece] = []
    for part, form in pieces:
        if isinstance(part, Sum):
            flat += [(p, form ^ f) for p, f in zip(part.parts, part.forms, strict=True)]
        elif part.size:
            flat.append((part, form))
    if not flat:
        return Uniform(0), 0
    first = flat[0][1]
    if len(flat) == 1:
        return flat[0]
    return Sum(tuple(p for p, _ in flat), tuple(f ^ first for _, f in flat)), first


def apart(label: Sum) -> list[Piece]:
    """Return the stretches of an axis."""
    return list(zip(label.parts, label.forms, strict=True))


def resolve(label: Label) -> Label:
    """Replace classes by the labels that they are bound to."""
    if isinstance(label, Strand):
        return label.of.fixed.get(label.axis, label)
    if isinstance(label, Leaf):
        bound = label.of.bound
        if bound is None:
            return label
        found = resolve(bound)
        label.of.bound = found  # Shorten the path for the next call.
        return _times(found, label.form)
    if isinstance(label, Product):
        return product(map(resolve, label.parts))
    if isinstance(label, Sum):
        return concatenated((resolve(part), form) for part, form in apart(label))[0]
    return label


def _times(label: Label, form: int) -> Label:
    """Add a form to the signs of the components of all leaves."""
    if not form:
        return label
    if isinstance(label, Leaf):
        return Leaf(label.of, label.form ^ form)
    if isinstance(label, Product | Sum):
        return replace(label, parts=tuple(_times(part, form) for part in label.parts))
    return label


def unsigned(label: Label) -> Label:
    """Return the label of an array whose signs do not change."""
    if isinstance(label, Leaf):
        return Leaf(label.of)
    if isinstance(label, Product):
        return Product(tuple(map(unsigned, label.parts)))
    if isinstance(label, Sum):
        return Sum(tuple(map(unsigned, label.parts)), (0,) * len(label.parts))
    return label


def forms_of(label: Label) -> Iterator[int]:
    """Return the forms of leaves and of stretches."""
    if isinstance(label, Leaf):
        yield label.form
    elif isinstance(label, Product | Sum):
        yield from label.forms if isinstance(label, Sum) else ()
        for part in label.parts:
            yield from forms_of(part)


def leaves(label: Label) -> Iterator[Leaf]:
    """Return the leaves from left to right."""
    if isinstance(label, Leaf):
        yield label
    elif isinstance(label, Product | Sum):
        for part in label.parts:
            yield from leaves(part)


def same_structure(a: Label, b: Label) -> bool:
    """Check whether two resolved labels describe an axis in the same way, apart from their forms."""
    if isinstance(a, Leaf) and isinstance(b, Leaf):
        return a.of is b.of
    if isinstance(a, Product | Sum) and type(a) is type(b) and len(a.parts) == len(b.parts):
        return all(map(same_structure, a.parts, b.parts))
    if isinstance(a, Strand) and isinstance(b, Strand):
        return a.of is b.of and a.axis == b.axis
    return isinstance(a, Uniform) and a == b


@dataclass
class Unifier:
    """The operations that tie labels together, and their conditions on signs.

    `checks` are forms that have to vanish; they are collected only while signs are read.
    """

    signs: bool = False
    checks: list[int] = field(default_factory=list)
    why: Why = Why("")  # What the equation does that is walked through.

    def vanish(self, form: int) -> None:
        """Require that a form is 0."""
        if self.signs and form:
            self.checks.append(form)

    def steady(self, label: Label) -> Label:
        """Require that no sign changes along an axis."""
        for form in forms_of(resolve(label)):
            self.vanish(form)
        return label

    def fixed(self, size: int, why: Why) -> Label:
        """Label an axis of a new array along which no permutation is allowed."""
        return Leaf(AxisClass(size, why=why)) if size > 1 else Uniform(size)

    def fix(self, label: Label, why: Why) -> None:
        """Allow no permutation along an axis, and no change of sign; uniform axes stay as they are."""
        if isinstance(label := resolve(label), Strand):
            self.untangle(label.of, why)
        for leaf in leaves(resolve(self.steady(label))):
            leaf.of.why = leaf.of.why or why

    def untangle(self, tangle: Tangle, why: Why) -> None:
        """Allow no permutation of an array whose axes are tangled, as an order along one of them counts."""
        if not tangle.fixed and tangle.settle:
            tangle.fixed = dict(enumerate(tangle.settle()))
        elif not tangle.fixed:
            sizes = enumerate(tangle.sizes)
            tangle.fixed = {axis: self.fixed(size, why) for axis, size in sizes}
            for label in tangle.before:
                self.fix(label, why)

    def unify(self, a: Label, b: Label, *, times: bool = False) -> Label:
        """Tie two axes together and return the label of both.

        Signs are equal, or with `times` those of a product of the two arrays.
        """
        a, b = resolve(a), resolve(b)
        if isinstance(a, Uniform) or isinstance(b, Uniform):
            other = b if isinstance(a, Uniform) else a
            return other if times else self.steady(other)
        if isinstance(a, Strand) or isinstance(b, Strand):
            if same_structure(a, b):
                return a
            for each in (a, b):
                if isinstance(each, Strand):
                    self.untangle(each.of, self.why)
            return self.unify(a, b, times=times)
        if isinstance(a, Leaf) and isinstance(b, Leaf):
            self._bind(a.of, Leaf(b.of))
            if not times:
                self.vanish(a.form ^ b.form)
            return Leaf(b.of, a.form ^ b.form if times else b.form)
        if isinstance(a, Leaf) or isinstance(b, Leaf):
            leaf, other = (a, b) if isinstance(a, Leaf) else (b, a)
            assert isinstance(leaf, Leaf)
            # A part that is uniform in one label is not uniform in the other.
            label = self._with_classes(other)
            self._bind(leaf.of, unsigned(label))
            if not times:
                self.steady(_times(label, leaf.form))
            return _times(label, leaf.form) if times else label
        if isinstance(a, Product) and isinstance(b, Product):
            pairs = self._common_factors(a, b)
            if pairs is not None:
                return product(self.unify(*pair, times=times) for pair in pairs)
        else:
            points = sorted(self._borders(a) | self._borders(b))
            first, second = self.cut(a, points), self.cut(b, points)
            if first and second:
                found = []
                for (left, f), (right, g) in zip(first, second, strict=True):
                    if not times:
                        self.vanish(f ^ g)
                    found.append((self.unify(left, right, times=times), f ^ g if times else f))
                return concatenated(found)[0]
        why = Why("merged in two ways that have no common parts")
        self.fix(a, why)
        self.fix(b, why)
        return self.fixed(a.size, why)

    def _bind(self, node: AxisClass, label: Label) -> None:
        if isinstance(label, Leaf) and label.of is node:
            return
        node.bound = label
        for leaf in leaves(label):
            leaf.of.why = leaf.of.why or node.why
        node.why = node.why or self.why  # The reason if no part has a separate one.

    def _with_classes(self, label: Label) -> Label:
        """Return the label with a new class in place of every uniform part."""
        if isinstance(label, Uniform):
            return Leaf(AxisClass(label.size)) if label.size > 1 else label
        if isinstance(label, Product | Sum):
            return replace(label, parts=tuple(map(self._with_classes, label.parts)))
        return label

    def _borders(self, label: Label) -> set[int]:
        """Positions inside an axis at which a sum of labels is joined."""
        if not isinstance(label, Sum):
            return set()
        return set(accumulate(part.size for part in label.parts[:-1]))

    def cut(self, label: Label, points: Sequence[int]) -> list[Piece] | None:
        """Split an axis at positions inside it; None if that is impossible."""
        label = resolve(label)
        points = [p for p in points if 0 < p < label.size]
        if not points:
            return [(label, 0)]
        sizes = [b - a for a, b in zip([0, *points], [*points, label.size], strict=True)]
        if isinstance(label, Uniform):
            return [(Uniform(size), 0) for size in sizes]
        if isinstance(label, Leaf):
            parts = tuple(self.fixed_like(label.of, size) for size in sizes)
            label.of.bound = Sum(parts, (0,) * len(parts))
            label.of.why = label.of.why or self.why
            # Parts of an array that changes sign with the whole class change sign with their own classes.
            return [(_times(part, label.form), 0) for part in parts]
        if isinstance(label, Sum):
            found: list[list[Piece]] = [[] for _ in sizes]
            start = 0
            starts = [0, *points]
            for part, form in apart(label):
                inner = [p - start for p in points if start < p < start + part.size]
                pieces = self.cut(part, inner)
                if pieces is None:
                    return None
                for piece, more in pieces:
                    at = max(i for i, first in enumerate(starts) if first <= start)
                    found[at].append((piece, form ^ more))
                    start += piece.size
            return [concatenated(each) for each in found]
        return self._cut_product(label, points) if isinstance(label, Product) else None

    def _cut_product(self, label: Product, points: Sequence[int]) -> list[Piece] | None:
        first, rest = label.parts[0], product(label.parts[1:])
        if any(point % rest.size for point in points):
            return None
        pieces = self.cut(first, [point // rest.size for point in points])
        return pieces and [(product((piece, rest)), form) for piece, form in pieces]

    def fixed_like(self, node: AxisClass, size: int) -> Label:
        """Label a part of a class with a new class, which is fixed for the same reason."""
        return Leaf(AxisClass(size, why=node.why)) if size > 1 else Uniform(1)

    def factor(self, label: Label, outer: int, inner: int) -> tuple[Label, Label] | None:
        """Split an axis into factors of these sizes; None if that is impossible."""
        label = resolve(label)
        if outer == 1 or inner == 1:
            return (Uniform(1), label) if outer == 1 else (label, Uniform(1))
        if isinstance(label, Uniform):
            return Uniform(outer), Uniform(inner)
        if isinstance(label, Leaf):
            pair = (self.fixed_like(label.of, outer), self.fixed_like(label.of, inner))
            label.of.bound = Product(pair)
            label.of.why = label.of.why or self.why
            left, right = pair
            # The sign of a component of the whole is not a product of signs of the factors.
            self.vanish(label.form)
            return left, right
        if isinstance(label, Sum):
            if any(part.size % inner for part in label.parts):
                return None
            pairs = [self.factor(part, part.size // inner, inner) for part in label.parts]
            whole = [pair for pair in pairs if pair is not None]
            if len(whole) < len(pairs):
                return None
            common = whole[0][1]
            for _, each in whole[1:]:
                common = self.unify(common, each)
            lefts = [left for left, _ in whole]
            return concatenated(zip(lefts, label.forms, strict=True))[0], common
        if isinstance(label, Strand):
            return None
        before: list[Label] = []
        done = 1
        for at, part in enumerate(label.parts):
            if done * part.size <= outer:
                before.append(part)
                done *= part.size
                if outer % done:
                    return None
                continue
            after = label.parts[at + 1 :]
            if done == outer:
                return product(before), product((part, *after))
            need = outer // done
            if part.size % need:
                return None
            split = self.factor(part, need, part.size // need)
            return split and (product((*before, split[0])), product((split[1], *after)))
        return product(before), Uniform(1)

    def _common_factors(self, a: Product, b: Product) -> list[tuple[Label, Label]] | None:
        """Pairs of factors of equal sizes."""
        pairs: list[tuple[Label, Label]] = []
        left, right = list(a.parts), list(b.parts)
        while left and right:
            first, second = resolve(left.pop(0)), resolve(right.pop(0))
            if first.size == second.size:
                pairs.append((first, second))
                continue
            swapped = first.size > second.size
            if swapped:
                first, second, left, right = second, first, right, left
            if second.size % first.size:
                return None
            pair = self.factor(second, first.size, second.size // first.size)
            if pair is None:
                return None
            pairs.append((pair[0], first) if swapped else (first, pair[0]))
            right.insert(0, pair[1])
            if swapped:
                left, right = right, left
        return pairs

    def reshaped(self, labels: Sequence[Label], sizes: Sequence[int]) -> tuple[Label, ...] | None:
        """Return the labels of an array of another shape; None if they have no common factors."""
        rest = product(map(resolve, labels))
        found: list[Label] = []
        for size in sizes:
            pair = self.factor(rest, size, rest.size // size) if size else None
            if pair is None:
                return None
            found.append(pair[0] if size > 1 else Uniform(1))
            rest = resolve(pair[1])
        return tuple(found)
