"""A walk through a jaxpr that gives every array its labels and its sign, by one rule per equation.

Arrays that depend on no parameter are computed (`Constant`), so that the values of masks and identity matrices are
known. Inner programs are read in place. Bodies of loops are read until the labels of the values that they carry stay
the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from .labels import (
    AxisClass,
    Label,
    Leaf,
    Product,
    Strand,
    Sum,
    Unifier,
    Uniform,
    Why,
    forms_of,
    leaves,
    resolve,
    same_structure,
    unsigned,
)

FOLDED = 2**24  # Maximum size of an array for which expressions without parameters are evaluated.
RUNS = 8  # Maximum number of distinct stretches of equal values along an axis of a constant.
LARGEST_EYE = 2048
"""Maximum length of a square constant that is compared with an identity matrix."""
ROUNDS = 30  # Walks through the body of a loop until labels stay the same.


class Constant:
    """An array that depends on no parameter; it is computed when it is first needed."""

    def __init__(self, value: Any = None, made: tuple[JaxprEqn, int, list[Constant]] | None = None):
        self.made, self._value = made, value

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(np.shape(self._value) if self.made is None else self._aval.shape)

    @property
    def random(self) -> bool:
        """Check whether it holds random keys, which have no value in NumPy."""
        kind = self._value.dtype if self.made is None else self._aval.dtype
        return bool(jax.dtypes.issubdtype(kind, jax.dtypes.extended))

    @property
    def _aval(self) -> Any:
        assert self.made is not None
        eqn, place, _ = self.made
        return eqn.outvars[place].aval

    @property
    def value(self) -> Any:
        """Its value, of NumPy or JAX."""
        # No recursion, because a program may compute a constant in thousands of steps.
        waiting = [self]
        while waiting:
            last = waiting[-1]
            if last.made is None:
                waiting.pop()
                continue
            eqn, place, args = last.made
            before = [arg for arg in args if arg.made is not None]
            if before:
                waiting += before
                continue
            last._value, last.made = computed(eqn, [arg._value for arg in args])[place], None
        return self._value


@dataclass(frozen=True)
class Array:
    """Labels of an array, one per axis, and the unknown signs that change the sign of the whole array."""

    labels: tuple[Label, ...]
    form: int = 0
    blank: bool = False  # Whether it is 0 everywhere, which no sign changes.
    known: Constant | None = None  # The value of an operand that depends on no parameter.

    @property
    def value(self) -> np.ndarray | None:
        """Its value, if it depends on no parameter."""
        if self.known is None or self.known.random:
            return None
        return np.asarray(self.known.value)

    @property
    def zero(self) -> bool:
        """Check whether it is known to be 0 everywhere."""
        return self.blank or (self.value is not None and not self.value.any())

    @property
    def signed(self) -> bool:
        """Check whether some unknown sign changes a sign in the array."""
        return bool(self.form) or any(any(forms_of(resolve(label))) for label in self.labels)

    @property
    def infinite(self) -> bool:
        """Check whether it is known to be infinite everywhere."""
        value = self.value
        return value is not None and value.dtype.kind == "f" and bool(np.isinf(value).all())

    @property
    def number(self) -> int | None:
        """The only number in it, if it is known."""
        return None if self.value is None or self.value.size != 1 else int(self.value.item())


_AS_NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs,
    "sign": np.sign, "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1,
    "sqrt": np.sqrt, "square": np.square, "max": np.maximum, "min": np.minimum,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "is_finite": np.isfinite, "stop_gradient": np.asarray, "copy": np.asarray,
}  # fmt: skip
"""Elementwise functions that NumPy computes like JAX, without compiling them."""


def computed(eqn: JaxprEqn, values: Sequence[Any]) -> Sequence[Any]:
    """Compute the results of an equation, with NumPy if it is a common one, or else with JAX."""
    name, p = eqn.primitive.name, eqn.params
    with np.errstate(all="ignore"):
        if name in _AS_NUMPY:
            found = _AS_NUMPY[name](*values)
        elif name == "convert_element_type":
            found = np.asarray(values[0]).astype(p["new_dtype"])
        elif name == "iota":
            found = np.moveaxis(np.zeros(p["shape"], p["dtype"]), p["dimension"], -1)
            found = np.moveaxis(found + np.arange(found.shape[-1]), -1, p["dimension"])
        elif name == "broadcast_in_dim":
            shape = [1] * len(p["shape"])
            for size, place in zip(np.shape(values[0]), p["broadcast_dimensions"], strict=True):
                shape[place] = size
            found = np.broadcast_to(np.reshape(values[0], shape), p["shape"])
        elif name == "reshape":
            found = np.reshape(values[0], p["new_sizes"])
        elif name == "squeeze":
            found = np.squeeze(values[0], p["dimensions"])
        elif name == "reduce_sum":
            found = np.sum(values[0], p["axes"])
        elif name == "select_n" and len(values) == 3:
            found = np.where(*(values[at] for at in (0, 2, 1)))
        else:
            found = eqn.primitive.bind(*values, **p)
    if eqn.primitive.multiple_results:
        return list(found)
    aval: Any = eqn.outvars[0].aval
    return [found if isinstance(found, jax.Array) else np.asarray(found, aval.dtype)]


def _label_constant(value: np.ndarray) -> list[Label | None]:
    """Label a constant: uniform axes, stretches of equal entries, one class for both axes of a matrix like `eye`."""
    found: list[Label | None] = []
    for axis in range(value.ndim):
        runs = _runs(value, axis)
        if runs is None:
            found.append(None)
        else:
            parts = tuple(map(Uniform, runs))
            found.append(parts[0] if len(parts) == 1 else Sum(parts, (0,) * len(parts)))
    for first in range(value.ndim):
        for second in range(first + 1, value.ndim):
            size = value.shape[first]
            square = found[first] is found[second] is None and size == value.shape[second]
            if square and size <= LARGEST_EYE and _like_eye(value, first, second):
                found[first] = found[second] = Leaf(AxisClass(size))
    return found


def _runs(value: np.ndarray, axis: int) -> list[int] | None:
    """Return the lengths of stretches of equal slices along an axis; None if there are too many to distinguish."""
    rows = np.moveaxis(value, axis, 0)
    size = len(rows)
    if size < 2 or not value.size:
        return [size]
    some = rows[: RUNS + 2]
    first = _changes(some)
    if len(first) > RUNS or (size > 2 and len(first) == len(some) - 1):
        return None  # Return early for large data.
    borders = first if size <= RUNS + 2 else _changes(rows)
    if len(borders) >= RUNS or len(borders) == size - 1:
        return None
    return np.diff([0, *borders, size]).tolist()


def _changes(rows: np.ndarray) -> list[int]:
    """Return the places of slices that differ from the one before."""
    differ = rows[1:] != rows[:-1]
    if rows.dtype.kind in "fc":
        differ &= ~(np.isnan(rows[1:]) & np.isnan(rows[:-1]))
    return (np.flatnonzero(differ.reshape(len(differ), -1).any(axis=1)) + 1).tolist()


def _like_eye(value: np.ndarray, first: int, second: int) -> bool:
    rows = np.moveaxis(value, (first, second), (0, 1))
    size = len(rows)
    on = np.eye(size, dtype=bool)
    diagonal, others = rows[on], rows[~on]
    return bool((diagonal == diagonal[:1]).all() and (others == others[:1]).all())


Operand = Array | Constant
Operands = Sequence[Operand]
Rule = Callable[["ProgramWalk", Any, Sequence[Array]], Any]


@dataclass
class ProgramWalk:
    """The state of one walk: rules, labels, and primitives that no rule knows."""

    rules: dict[str, Rule]
    on: Unifier
    unknown: dict[str, None] = field(default_factory=dict)
    owner: list[AxisClass | None] = field(default_factory=list)
    """The class of each unknown sign; None for a whole array."""
    site: str = ""
    sites: dict[int, str] = field(default_factory=dict)

    def why(self, what: str) -> Why:
        """Return a reason with the site of the current equation."""
        return Why(what, self.site)

    def labelled(self, array: Array | Constant) -> Array:
        """Return an array with its labels; those of a constant follow from its value."""
        if isinstance(array, Array):
            return array
        if not array.shape:
            return Array((), known=array)
        if array.random:
            return Array(tuple(self.fixed(size, "random keys") for size in array.shape))
        value = np.asarray(array.value)
        found = _label_constant(value)
        what = f"a constant of shape {value.shape} differs along it"
        labels = tuple(
            self.fixed(size, what) if label is None else label
            for size, label in zip(value.shape, found, strict=True)
        )
        return Array(labels, known=array)

    def fixed(self, size: int, what: str) -> Label:
        """Label an axis along which no permutation is allowed."""
        return self.on.fixed(size, self.why(what))

    def fix(self, label: Label, what: str) -> Label:
        """Allow no permutation along an axis, and label a resulting axis of the same length."""
        self.on.fix(label, self.why(what))
        return self.fixed(label.size, what)

    def unknown_bit(self, owner: AxisClass | None) -> int:
        """Return a new unknown sign."""
        if not self.on.signs:
            return 0
        self.owner.append(owner)
        return 1 << (len(self.owner) - 1)

    def with_unknowns(self, array: Array, *, stretches: bool = True) -> Array:
        """Return the array with new unknown signs for the whole, for each leaf of its labels and for each stretch."""

        def own(label: Label) -> Label:
            if isinstance(label, Leaf):
                return Leaf(label.of, self.unknown_bit(label.of))
            if isinstance(label, Product):
                return Product(tuple(map(own, label.parts)))
            if isinstance(label, Sum):
                forms = [self.unknown_bit(None) if stretches else 0 for _ in label.parts[1:]]
                return Sum(tuple(map(own, label.parts)), (0, *forms))
            return label

        labels = tuple(own(resolve(label)) for label in array.labels)
        return Array(labels, self.unknown_bit(None))

    # What rules are made of.

    def plain(self, *arrays: Array) -> None:
        """Require that no sign in some arrays changes."""
        for array in arrays:
            self.on.vanish(array.form)
            for label in array.labels:
                self.on.steady(label)

    def even(self, array: Array) -> Array:
        """Return the result of a function for which a sign makes no difference."""
        return Array(tuple(unsigned(resolve(label)) for label in array.labels))

    def equal(self, arrays: Sequence[Array]) -> Array:
        """Return the result of adding arrays, which have to change their signs alike, or of choosing one of them."""
        rank = max(len(array.labels) for array in arrays)
        full = [array for array in arrays if len(array.labels) == rank]
        if any(array.signed for array in arrays):
            some = [array for array in arrays if not array.zero] or full
            if any(len(array.labels) < rank for array in some):
                self.plain(*some)
            full = [array for array in some if len(array.labels) == rank] or full
            for array in full[1:]:
                self.on.vanish(array.form ^ full[0].form)
        return Array(self._alike(full), full[0].form, all(array.blank for array in arrays))

    def _alike(self, arrays: Sequence[Array]) -> tuple[Label, ...]:
        """Tie the axes of arrays of one rank together, and return the labels of all."""
        labels = arrays[0].labels
        for array in arrays[1:]:
            labels = tuple(map(self.on.unify, labels, array.labels))
        return labels

    def times(self, arrays: Sequence[Array]) -> Array:
        """Return the result of multiplying arrays entry by entry."""
        rank = max(len(array.labels) for array in arrays)
        form, labels, unify = 0, None, partial(self.on.unify, times=True)
        for array in arrays:
            form ^= array.form
            if len(array.labels) == rank:
                other = array.labels
                labels = other if labels is None else tuple(map(unify, labels, other))
        return Array(labels or (), form, any(array.blank for array in arrays))

    def entrywise(self, arrays: Sequence[Array]) -> Array:
        """Return the result of a function of entries in which any sign makes a difference."""
        self.plain(*arrays)
        rank = max(len(array.labels) for array in arrays)
        full = [array for array in arrays if len(array.labels) == rank]
        return self.even(Array(self._alike(full)))

    # The walk.

    def through(self, jaxpr: Jaxpr, consts: Operands, args: Operands) -> list[Operand]:
        """Walk through a program and return the labels or values of its results."""
        env: dict[Any, Operand] = {}
        env.update(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(var: Any) -> Operand:
            return Constant(np.asarray(var.val)) if isinstance(var, Literal) else env[var]

        for eqn in jaxpr.eqns:
            if id(eqn) in self.sites:
                self.site = self.sites[id(eqn)]
            found = self.apply(eqn, [read(var) for var in eqn.invars])
            env.update(zip(eqn.outvars, found, strict=True))
        return [read(var) for var in jaxpr.outvars]

    def inner(self, closed: Any, args: Operands) -> list[Operand]:
        """Walk through a program within an equation."""
        if isinstance(closed, Jaxpr):
            return self.through(closed, (), args)
        return self.through(closed.jaxpr, [Constant(value) for value in closed.consts], args)

    def apply(self, eqn: JaxprEqn, args: Operands) -> list[Operand]:
        """Return the labels or values of the results of one equation."""
        name = eqn.primitive.name
        call = called(eqn)
        if call is not None:
            return self.inner(call, args)
        known = all(isinstance(arg, Constant) for arg in args)
        avals: list[Any] = [var.aval for var in eqn.outvars]
        size = sum(math.prod(aval.shape) for aval in avals)
        if known and name != "platform_index" and size <= FOLDED and not eqn.effects:
            of = [arg for arg in args if isinstance(arg, Constant)]
            return [Constant(made=(eqn, place, of)) for place in range(len(eqn.outvars))]
        rule = self.rules.get(name)
        if rule is None:
            self.unknown[name] = None
            rule = unread
        self.on.why = self.why(f"`{name}`")
        self.untangle(eqn, args)
        operands: Any = args if name in LOOPS else [self.labelled(arg) for arg in args]
        found = rule(self, eqn, operands)
        results = found if eqn.primitive.multiple_results else (found,)
        return [e if isinstance(e, Constant) else replace(e, known=None) for e in results]

    def untangle(self, eqn: JaxprEqn, args: Operands) -> None:
        """Fix arrays whose axes are tangled, before an equation for which an order along one of them counts."""
        gone = eqn.params.get("axes", ()) if eqn.primitive.name in TOTALS else ()
        for array in (arg for arg in args if isinstance(arg, Array)):
            strands = {
                at: label
                for at, own in enumerate(array.labels)
                if isinstance(label := resolve(own), Strand)
            }
            for label in strands.values():
                own = {at for at, other in strands.items() if other.of is label.of}
                whole = own <= {*gone} and len(own) == sum(size > 1 for size in label.of.sizes)
                if (
                    eqn.primitive.name not in ORDERLESS
                    and not (own.isdisjoint(gone) and gone)
                    and not whole
                ):
                    why = self.why("reshaped to a shape that its parts do not fit")
                    self.on.untangle(label.of, why)

    def settled(self, start: Operands, body: Callable[[list[Array]], Operands]) -> list[Array]:
        """Find the values that a loop carries; iterate until they no longer change."""
        first = carry = [self.labelled(array) for array in start]
        signs, self.on.signs = self.on.signs, False
        for _ in range(ROUNDS):
            found = [self.labelled(array) for array in body(carry)]
            new = [
                Array(
                    tuple(
                        resolve(self.on.unify(*pair))
                        for pair in zip(a.labels, b.labels, strict=True)
                    )
                )
                for a, b in zip(carry, found, strict=True)
            ]
            old = [[resolve(label) for label in array.labels] for array in carry]
            carry = new
            if all(
                all(map(same_structure, before, after.labels))
                for before, after in zip(old, new, strict=True)
            ):
                break
        self.on.signs = signs
        if signs:
            carry = [self.with_unknowns(array) for array in carry]
            for before, here in zip(first, carry, strict=True):
                if not before.zero:
                    self.equal([before, here])
            for here, there in zip(carry, map(self.labelled, body(carry)), strict=True):
                self.equal([here, there])
        return carry


TOTALS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or")
"""Equations whose results do not depend on the order along some axes."""
_ORDERLESS = """
neg sin tanh asinh erf sign convert_element_type stop_gradient copy abs square cos cosh is_finite exp log log1p expm1
logistic sqrt max min eq ne lt le gt ge and or not add sub mul div integer_pow pow select_n transpose squeeze
expand_dims
"""
ORDERLESS = frozenset(_ORDERLESS.split())
"""Equations for which a rule, or `Unifier.unify`, decides whether an order along tangled axes counts."""
LOOPS = ("scan", "while", "cond", "custom_linear_solve", "platform_index")
"""Primitives with programs inside, whose rules see known values as such."""
CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLING = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "remat",
    "remat2",
    "checkpoint",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "custom_lin",
)


def called(eqn: JaxprEqn) -> ClosedJaxpr | Jaxpr | None:
    """Return the program that an equation only calls."""
    if eqn.primitive.name not in _CALLING:
        return None
    return next(eqn.params[key] for key in CALLS if key in eqn.params)


def unread(walk: ProgramWalk, eqn: JaxprEqn, args: Sequence[Array]) -> Any:
    """Fix all arrays of an equation without a rule."""
    what = f"`{eqn.primitive.name}` is not understood"
    walk.plain(*args)
    for arg in args:
        for label in arg.labels:
            walk.fix(label, what)
    avals: list[Any] = [var.aval for var in eqn.outvars]
    found = [Array(tuple(walk.fixed(size, what) for size in aval.shape)) for aval in avals]
    return found if eqn.primitive.multiple_results else found[0]


def replaced(array: Array, labels: Sequence[Label]) -> Array:
    """Return the array with other labels."""
    return replace(array, labels=tuple(labels), known=None)


def moves(label: Label) -> bool:
    """Check whether any class along an axis may be permuted."""
    return any(leaf.of.why is None for leaf in leaves(resolve(label)))
