"""Interchangeable components: permutations, perhaps with changes of sign and complements.

`Exchangeable` has components along axes. `Counterparts` has components that are separate parameters, or single
positions of one, such as `mu1` and `mu2`, `theta[0]` and `theta[2]`: a tuple for each quantity, with a member for each
component. Its stacked view has the members of each tuple in one array (component, ...), called ``mu1~mu2``, and the
block there is `Exchangeable`: `stack` makes the view, `stacked` is the block on it, and `unstack` writes the members
back. Alignment, invariants, plots and canonical labels use the view (`plain_view`). A block has everything that moves
together: a simplex by its axis (`along`), a parameter that changes sign as the tuple ``("eta", "-eta")``, a weight that
becomes its complement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from onebasin.base.errors import ArgumentError, ArgumentTypeError

from .block import Axes, AxisPart, Block, Place, Values, check_axes, check_names, on_axis, places_of
from .elements import Permuted, Shapes, along, complement, module_of, scale, take


class Permuting(Block[Permuted]):
    """A block whose group permutes components, each perhaps with its own sign."""

    turn = 0

    def identity(self, lead: tuple[int, ...], size: int) -> Permuted:
        """Return the identity."""
        order = np.broadcast_to(np.arange(size), (*lead, size)).copy()
        return Permuted(order, np.ones((*lead, size)) if self.flipped else None)

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Permuted:
        """Draw permutations uniformly, and signs if there are flips."""
        order = rng.permuted(np.broadcast_to(np.arange(size), (*lead, size)), axis=-1)
        signs = rng.choice([-1.0, 1.0], size=(*lead, size)) if self.flipped else None
        return Permuted(order, signs)

    def elements(self, size: int) -> list[Permuted]:
        """Return every permutation, with all signs if there are flips."""
        orders = [np.array(order) for order in permutations(range(size))]
        if not self.flipped:
            return [Permuted(order) for order in orders]
        signs = [np.array(choice) for choice in product([1.0, -1.0], repeat=size)]
        return [Permuted(order, choice) for order in orders for choice in signs]

    def log_order(self, size: int) -> float:
        """Return the logarithm of the number of permutations, times that of signs."""
        return math.lgamma(size + 1) + (size * math.log(2) if self.flipped else 0.0)

    def compose(self, first: Permuted, then: Permuted, beside: object) -> Permuted:
        """Return the element that acts like `first` followed by `then`."""
        permutation = along(first.permutation, then.permutation)
        if first.signs is None or then.signs is None:
            return Permuted(permutation)
        return Permuted(permutation, along(first.signs, then.permutation) * then.signs)

    def inverse(self, part: Permuted, beside: object) -> Permuted:
        """Return the inverse of an element."""
        back = np.argsort(part.permutation, axis=-1)
        return Permuted(back, None if part.signs is None else along(part.signs, back))


@dataclass(frozen=True)
class Exchangeable(Permuting):
    """Interchangeable components: one permutation acts on the named axes of every variable.

    Parameters
    ----------
    axes : mapping of str to int, AxisPart, or tuple of these
        Variable name to axis; to several axes if one permutation acts on all of them (both axes of a hidden Markov
        model's transition matrix); to an `AxisPart` if the components are a factor or a slice of an axis.
    flips : bool or tuple of str
        Whether a component may also change the sign of all its entries (odd activations, loadings of factors): in
        every variable, or in the named ones.
    complements : tuple of str
        Only for two components: variables theta that become 1 - theta when the two change places (the
        weight of the first component of a mixture of two).

    Raises
    ------
    TypeError
        If `axes` maps no names to axes, or `flips` or `complements` contain anything but names.
    ValueError
        If `flips` names a variable without an axis, or `complements` one with an axis.

    Examples
    --------
    >>> block = ob.Exchangeable({"mu": 0, "sigma": 0}, complements=("theta",))  # of a mixture of two
    >>> moved = block.act({"mu": np.array([-1.0, 3.0]), "theta": np.array(0.25)}, np.array([1, 0]))
    >>> moved["mu"].tolist(), float(moved["theta"])
    ([3.0, -1.0], 0.75)
    """

    kind = "exchangeable"

    axes: Mapping[str, Axes]
    flips: bool | tuple[str, ...] = False
    complements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the names."""
        check_axes("axes", self.axes, several=True, parts=True)
        if not isinstance(self.flips, bool):
            check_names("flips", self.flips)
        check_names("complements", self.complements)
        if not self.variables:
            raise ArgumentError(
                "`axes` is empty. Map each variable to the axis of its components, as in {'mu': 0}."
            )
        unknown = [name for name in self.flipped if name not in self.axes]
        if unknown:
            raise ArgumentError(
                f"`flips` names {', '.join(unknown)}, but only variables in `axes` can change sign. Correct the "
                "names in `flips`."
            )
        twice = [name for name in self.complements if name in self.axes]
        if twice:
            raise ArgumentError(
                f"`complements` names {', '.join(twice)}, which `axes` already moves. Name every variable only once."
            )

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign."""
        if isinstance(self.flips, bool):
            return tuple(self.axes) if self.flips else ()
        return tuple(self.flips)

    def act(self, values: Values, permutation: Any, signs: Any = None) -> dict[str, Any]:
        """Move draws (*lead, *event): component i of the result is component `permutation[i]`, times `signs[i]`.

        Permutations of 0, 1, ..., H - 1 and signs have the shape (*lead, component), in NumPy or JAX; signs need
        `flips`. Variables of the block that are present are moved; all values are returned.
        """
        if signs is not None and not self.flipped:
            raise ArgumentError("`signs` is given, but this block has flips=False. Omit `signs`.")
        permutation = np.asarray(permutation)
        out = dict(values)
        for name in (name for name in self.axes if name in out):
            for place in places_of(self.axes[name]):
                order, factors = permutation, signs
                axis = place.axis if isinstance(place, AxisPart) else place
                if isinstance(place, AxisPart):
                    length = out[name].shape[permutation.ndim - 1 + axis]
                    order = place.widened(permutation, length)
                    factors = None if signs is None else place.spread(signs, length)
                out[name] = take(out[name], order, axis)
                if factors is not None and name in self.flipped:
                    out[name] = scale(out[name], factors, axis)
        swapped = np.asarray(permutation[..., 0] == 1)
        for name in (name for name in self.complements if name in out):
            out[name] = complement(out[name], swapped)
        return out

    def describe(self) -> str:
        """Describe the moved variables in plain words."""
        flips = f" with changes of sign of {', '.join(self.flipped)}" if self.flipped else ""
        moved = dict.fromkeys(self.variables, "")
        for name, place in sorted(self.moved, key=str):
            moved[name] += f":{place.word}" if isinstance(place, AxisPart) else ""
        return f"permutations of {', '.join(n + part for n, part in moved.items())}{flips}"

    def restricted(self, names: Iterable[str]) -> Exchangeable | None:
        """Return the block restricted to some variables; None if it moves none of them."""
        kept = set(names) & set(self.variables)
        if not kept:
            return None
        return Exchangeable(
            {name: places for name, places in self.axes.items() if name in kept},
            flips=tuple(name for name in self.flipped if name in kept),
            complements=tuple(name for name in self.complements if name in kept),
        )

    def of_variances(self, part: Permuted) -> tuple[Exchangeable, Permuted]:
        """Permute variances with the components; signs do not matter."""
        return Exchangeable(self.axes), Permuted(part.permutation)

    def entries(self, shapes: Shapes) -> dict[str, np.ndarray]:
        """Mark the entries that it moves: name to a boolean array of the variable's shape."""
        marks = super().entries(shapes)
        for name, places in self.axes.items():
            marks[name][...] = False
            for part in (on_axis(place, shapes[name]) for place in places_of(places)):
                np.moveaxis(marks[name], part.axis, 0)[part.positions] = True
        return marks

    def whole(self, shapes: Shapes) -> Exchangeable:
        """Return the block with a plain axis in place of a part that covers the whole axis."""

        def known(name: str, place: Place) -> Place:
            if not isinstance(place, AxisPart) or place.axis >= len(shapes[name]):
                return place
            return place.axis if place == on_axis(place.axis, shapes[name]) else place

        axes: dict[str, Axes] = dict(self.axes)
        for name in self.axes.keys() & shapes:
            own = tuple(known(name, place) for place in places_of(self.axes[name]))
            axes[name] = own if len(own) > 1 else own[0]
        return replace(self, axes=axes)

    def check(self, shapes: Shapes) -> None:
        """Reject shapes that it cannot move; `complements` needs two components."""
        super().check(shapes)
        if self.complements and self.size(shapes) != 2:
            raise ArgumentError(
                f"`complements` requires exactly two components, but the block has {self.size(shapes)}. Omit "
                "`complements`."
            )


MEMBER = re.compile(r"(?P<sign>1-|-)?(?P<name>[^\s,:~\[\]]+)(?:\[(?P<index>[0-9:, ]+)\])?")


class Member(NamedTuple):
    """A variable or positions in it, perhaps negated or complemented; indices count from 0 within a draw."""

    name: str
    at: tuple[int | slice, ...]
    sign: str = ""  # "-" or "1-".

    @classmethod
    def read(cls, text: str) -> Member:
        """Read ``mu1``, ``theta[2]``, ``A[0,1]``, ``A[:,1]``, ``-eta`` or ``1-p``; reject anything else."""
        found = MEMBER.fullmatch(text)
        places = (found["index"] or "").replace(" ", "").split(",") if found else [""]
        if found is None or (found["index"] and not all(p == ":" or p.isdigit() for p in places)):
            raise ArgumentError(
                f"`tuples` has the invalid member {text!r}. Write a variable such as mu1, or positions counted from 0, "
                "such as theta[2], A[0,1] or A[:,1]. Write -eta for a change of sign, and 1-p for a complement."
            )
        index = tuple(slice(None) if p == ":" else int(p) for p in places if p)
        return cls(found["name"], index, found["sign"] or "")

    def of(self, values: Values, lead: int) -> Any:
        """Return the member's entries (*lead, ...)."""
        return self.turned(values[self.name][(slice(None),) * lead + self.at])

    def turned(self, piece: Any) -> Any:
        """Convert entries of the variable to those of the member, and back."""
        return {"": lambda x: x, "-": lambda x: -x, "1-": lambda x: 1 - x}[self.sign](piece)

    def put(self, values: dict[str, Any], piece: Any, lead: int) -> None:
        """Replace the member's entries by others, in a new array of the same type."""
        old = values[self.name]
        piece = module_of(old).asarray(self.turned(piece), old.dtype)
        where = (slice(None),) * lead + self.at
        if not self.at:
            values[self.name] = piece
        elif isinstance(old, np.ndarray):
            values[self.name] = old.copy()
            values[self.name][where] = piece
        else:
            values[self.name] = old.at[where].set(piece)


@dataclass(frozen=True)
class Counterparts(Permuting):
    """Interchangeable components that are separate parameters, or single positions of a parameter.

    Parameters
    ----------
    tuples : tuple of tuple of str
        One tuple per quantity, with a member for each component, in the same order of components:
        ``(("mu1", "mu2"), ("sigma1", "sigma2"))``. A member is a variable, or positions of one, counted from 0:
        ``theta[2]``, ``A[0,1]``, ``A[:,1]``. Members of a tuple have equal shapes. The tuple ``("eta", "-eta")`` is a
        parameter that changes its sign when the two components change places; ``("se", "1-sp")`` are two
        probabilities; each becomes the complement of the other.
    along : mapping of str to int or tuple of int
        Variables that hold all components along an axis, as `axes` of `Exchangeable`, such as a simplex.
    flips : bool or tuple of str
        Whether a component may also change its sign: in all quantities, or in those named (``"l1~l2"``).
    complements : tuple of str
        Only for two components: variables theta that become 1 - theta when the two change places.

    Raises
    ------
    TypeError
        If `tuples` are not tuples of names, or another argument is not valid in `Exchangeable`.
    ValueError
        If there is no tuple, tuples have unequal lengths or fewer than two members, or a member cannot be read or is
        named twice.

    Examples
    --------
    >>> block = ob.Counterparts((("mu1", "mu2"), ("s1", "s2")), along={"theta": 0})
    >>> values = {"mu1": 1.0, "mu2": 5.0, "s1": 0.1, "s2": 0.5, "theta": [0.3, 0.7]}
    >>> moved = block.act({name: np.array(value) for name, value in values.items()}, np.array([1, 0]))
    >>> float(moved["mu1"]), float(moved["s1"]), moved["theta"].tolist()
    (5.0, 0.5, [0.7, 0.3])
    """

    kind = "counterparts"

    tuples: tuple[tuple[str, ...], ...]
    along: Mapping[str, Axes] = field(default_factory=dict)
    flips: bool | tuple[str, ...] = False
    complements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the members."""
        if not isinstance(self.tuples, tuple | list):
            raise ArgumentTypeError(
                f"`tuples` must contain tuples of names, such as (('mu1', 'mu2'),); got {self.tuples!r}."
            )
        for members in self.tuples:
            check_names("tuples", members)
        check_axes("along", self.along, several=True)
        check_names("complements", self.complements)
        if len({len(members) for members in self.tuples}) != 1:
            raise ArgumentError(
                "`tuples` must have at least one tuple, and every tuple needs one member per component; got "
                f"{self.tuples!r}."
            )
        if self.num_components < 2:
            raise ArgumentError(f"`tuples` must name at least two components; got {self.tuples!r}.")
        named = [m.name for own in self.members.values() for m in own]
        for name in (*self.along, *self.complements):
            if name in named:
                raise ArgumentError(
                    f"{name} is named in `tuples` and again in `along` or `complements`. Name each variable in only "
                    "one argument."
                )
        if set(self.reflected) & set(self.flipped):
            raise ArgumentError(
                f"`flips` names {next(iter(self.reflected))}, but `tuples` already changes the sign of this "
                "variable. Remove this name from `flips`."
            )

    @property
    def num_components(self) -> int:
        """The number of components that it moves."""
        return len(self.tuples[0])

    @cached_property
    def members(self) -> dict[str, tuple[Member, ...]]:
        """Members by the name of their tuple in the stacked view."""
        return {"~".join(own): tuple(map(Member.read, own)) for own in self.tuples}

    @property
    def reflected(self) -> dict[str, str]:
        """Names of the tuples ``("eta", "-eta")`` in the stacked view, each with its variable."""
        return {
            name: own[0]
            for name, own in zip(self.members, self.tuples, strict=True)
            if tuple(own[1:]) == (f"-{own[0]}",)
        }

    def sources(self, name: str) -> tuple[str, ...]:
        """Return the variables of a name in the stacked view."""
        own = self.members.get(name)
        return tuple(dict.fromkeys(member.name for member in own)) if own else (name,)

    @cached_property
    def stacked(self) -> Exchangeable:
        """The block on the stacked view."""
        apart: dict[str, Axes] = {name: 0 for name in self.members if name not in self.reflected}
        axes = {**apart, **self.along, **dict.fromkeys(self.reflected, 0)}
        return Exchangeable(axes, self.flips, self.complements)

    def stack(self, values: Values, lead: int) -> dict[str, Any]:
        """Add one stacked array (*lead, component, ...) for every tuple whose variables are all in `values`."""
        out = dict(values)
        for name, own in self.members.items():
            there = [member.name in values for member in own]
            if all(there):
                pieces = [member.of(values, lead) for member in own]
                out[name] = module_of(pieces[0]).stack(pieces, axis=lead)
            elif any(there):
                raise ArgumentError(
                    f"The symmetry moves {' and '.join(member.name for member in own)} together, but `values` "
                    "contains only some of these variables. Give all of them."
                )
        return out

    def unstack(self, values: Values, lead: int) -> dict[str, Any]:
        """Write the stacked view back to the variables."""
        out = {name: value for name, value in values.items() if name not in self.members}
        for name, own in self.members.items():
            if name in values:
                for place, member in enumerate(own):
                    piece = values[name][(slice(None),) * lead + (place,)]
                    member.put(out, piece, lead)
        return out

    @property
    def axes(self) -> Mapping[str, Axes]:
        """The axes that it moves in the stacked view."""
        return self.stacked.axes

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign with a single component, in the stacked view."""
        return self.stacked.flipped

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block touches."""
        named = (m.name for own in self.members.values() for m in own)
        return tuple(dict.fromkeys((*named, *self.along, *self.complements)))

    def act(self, values: Values, permutation: Any, signs: Any = None) -> dict[str, Any]:
        """Move draws (*lead, *event) as `Exchangeable.act` does; tuples with missing variables are left out."""
        lead = np.asarray(permutation).ndim - 1
        moved = self.stacked.act(self.stack(values, lead), permutation, signs)
        return self.unstack(moved, lead)

    def describe(self) -> str:
        """Describe the moved variables in plain words."""
        moved = [name for name in self.stacked.variables if name not in self.reflected]
        flips = f" with changes of sign of {', '.join(self.flipped)}" if self.flipped else ""
        changed = ", ".join(self.reflected.values())
        also = f", changing the sign of {changed}" if changed else ""
        return f"exchanges of {', '.join(moved)}{flips}{also}"

    def restricted(self, names: Iterable[str]) -> Block[Permuted] | None:
        """Return the block restricted to some variables; None if it moves none of them."""
        there = set(names)
        kept = {n for n, own in self.members.items() if {m.name for m in own} <= there}
        plain = self.stacked.restricted({*kept, *there - set(self.members)})
        if plain is None or not kept:
            return plain
        tuples = tuple(own for n, own in zip(self.members, self.tuples, strict=True) if n in kept)
        along = {name: axes for name, axes in self.along.items() if name in there}
        return Counterparts(tuples, along, plain.flips or False, plain.complements)

    def size(self, shapes: Shapes) -> int:
        """Return the number of components that it moves."""
        return self.num_components

    def check(self, shapes: Shapes) -> None:
        """Reject shapes that it cannot move.

        It rejects missing and repeated variables or positions, tuples with members of unequal shapes, and axes whose
        length is not the number of components.
        """
        self.check_names(shapes)
        self.entries(shapes)
        view: dict[str, tuple[int, ...]] = dict(shapes)
        for name, own in self.members.items():
            each = {np.empty(shapes[m.name])[m.at].shape for m in own}
            if len(each) > 1:
                raise ArgumentError(
                    f"`symmetry` exchanges the members of {name}, so they must have equal shapes; got "
                    f"{', '.join(map(str, sorted(each)))}."
                )
            view[name] = (len(own), *each.pop())
        self.stacked.check(view)

    def entries(self, shapes: Shapes) -> dict[str, np.ndarray]:
        """Mark the entries that it moves; reject missing positions and entries in two tuples."""
        marks = {name: np.zeros(shapes[name], np.intp) for name in self.variables}
        for name in (*self.along, *self.complements):
            marks[name][...] += 1
        for stacked, own in self.members.items():
            for member in own[:1] if stacked in self.reflected else own:
                try:
                    marks[member.name][member.at] += 1
                except IndexError:
                    raise ArgumentError(
                        f"`symmetry` moves {stacked}, but {member.name} has shape {tuple(shapes[member.name])}. "
                        "Choose positions that exist; they are counted from 0."
                    ) from None
                if marks[member.name].max(initial=0) > 1:
                    raise ArgumentError(
                        f"`symmetry` lists some entries of {member.name} twice. List each entry once."
                    )
        return {name: np.asarray(mark > 0) for name, mark in marks.items()}
