"""The rules of reading: for each primitive of JAX, how axes and signs pass through it.

A rule takes the walk, the equation and the labels of its operands, and returns the labels of its results. A primitive
without a rule fixes all its operands. Rules are conservative: tying together or fixing too much may lose a symmetry,
but never gives a false one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .labels import Label, Piece, Strand, Tangle, Uniform, concatenated, product, resolve
from .program import Array, ProgramWalk, Rule, replaced

RULES: dict[str, Rule] = {}


def rule(names: str) -> Any:
    """Register a rule for primitives, with names separated by spaces."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return register


# Elementwise functions.

# A change of sign does not change the result.
rule("abs square one_minus_square cos cosh is_finite bessel_i0e")(
    lambda walk, eqn, args: walk.even(args[0])
)
# An odd power keeps signs.
rule("integer_pow")(lambda walk, eqn, args: args[0] if eqn.params["y"] % 2 else walk.even(args[0]))
rule("add sub add_any")(lambda walk, eqn, args: walk.equal(args))  # All change sign together.
rule("optimization_barrier")(lambda walk, eqn, args: list(args))


@rule(
    "neg sin tan asin atan sinh tanh asinh atanh erf erf_inv cbrt sign real imag conj convert_element_type "
    "reduce_precision copy copy_p stop_gradient device_put round symbolic_zeros"
)
def odd(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """A change of sign passes to the result."""
    kind = eqn.params.get("new_dtype")
    if eqn.primitive.name == "convert_element_type" and np.dtype(kind).kind == "b":
        return walk.even(args[0])
    return args[0]


@rule(
    "exp exp2 expm1 log log1p log2 logistic sqrt rsqrt acos acosh erfc lgamma digamma floor ceil not population_count "
    "clz bessel_i1e igamma igammac igamma_grad_a random_gamma_grad regularized_incomplete_beta polygamma zeta "
    "nextafter mulhi rem atan2 max min and or xor shift_left shift_right_logical shift_right_arithmetic clamp complex "
    "bitcast_convert_type eq_to le_to lt_to le lt ge gt pow"
)
def entrywise(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Any change of sign matters, except in a comparison with infinity."""
    if len(args) == 2 and eqn.primitive.name in ("le", "lt", "ge", "gt"):
        return compared(walk, eqn, args)
    return walk.entrywise(args)


@rule("eq ne")
def compared(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """A change of sign does not matter in a comparison with itself, with infinity or, for equality, with 0."""
    equality = eqn.primitive.name in ("eq", "ne")
    first, second = args
    if not (first.signed or second.signed):
        return walk.entrywise(args)
    for array, other in ((first, second), (second, first)):
        if other.infinite or (equality and other.zero):
            return walk.even(array if len(array.labels) >= len(other.labels) else other)
    if eqn.invars[0] is eqn.invars[1]:
        return walk.even(first)
    return walk.entrywise(args)


@rule("mul div")
def multiplied(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Signs are multiplied."""
    if eqn.primitive.name == "mul" and eqn.invars[0] is eqn.invars[1]:
        return walk.even(args[0])
    return walk.times(args)


@rule("select_n")
def chosen(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """All cases must change sign together, and the selector must not change."""
    which, *cases = args
    walk.plain(which)
    found = walk.equal(cases)
    if which.labels:
        found = walk.times([walk.even(which), found])
    return found


# Changes of axes.


@rule("broadcast_in_dim")
def broadcast(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """New and repeated axes are uniform."""
    shape = eqn.params["shape"]
    labels: list[Label] = [Uniform(size) for size in shape]
    for label, place in zip(args[0].labels, eqn.params["broadcast_dimensions"], strict=True):
        if label.size == shape[place]:
            labels[place] = label
    return replaced(args[0], labels)


rule("transpose")(
    lambda walk, eqn, args: replaced(
        args[0], [args[0].labels[place] for place in eqn.params["permutation"]]
    )
)
rule("squeeze")(lambda walk, eqn, args: dropped(args[0], eqn.params["dimensions"]))
rule("rev")(
    lambda walk, eqn, args: on_axes(
        walk, args[0], eqn.params["dimensions"], "its order is reversed"
    )
)
rule("concatenate")(lambda walk, eqn, args: in_stretches(walk, args, eqn.params["dimension"]))


def dropped(array: Array, axes: Sequence[int]) -> Array:
    """Remove axes of an array."""
    rank = len(array.labels)
    gone = {axis % rank for axis in axes}
    return replaced(array, [label for at, label in enumerate(array.labels) if at not in gone])


@rule("expand_dims")
def expanded(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Axes of length 1 are added."""
    labels = list(args[0].labels)
    for axis in sorted(eqn.params["dimensions"]):
        labels.insert(axis, Uniform(1))
    return replaced(args[0], labels)


@rule("reshape")
def reshaped(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Axes are merged into products, and products are split."""
    sizes = eqn.outvars[0].aval.shape
    found = walk.on.reshaped(args[0].labels, sizes)
    if found is None:
        for label in args[0].labels:
            walk.on.steady(label)
        tangle = Tangle(tuple(args[0].labels), tuple(sizes))
        found = tuple(Strand(tangle, i, n) if n > 1 else Uniform(1) for i, n in enumerate(sizes))
    return replaced(args[0], found)


def on_axes(walk: ProgramWalk, array: Array, axes: Sequence[int], what: str) -> Array:
    """Fix some axes, and keep the others."""
    labels = list(array.labels)
    for axis in axes:
        labels[axis] = walk.fix(labels[axis], what)
    return replaced(array, labels)


def in_stretches(walk: ProgramWalk, arrays: Sequence[Array], axis: int) -> Array:
    """Concatenate arrays along an axis, each with its own sign; along other axes signs are equal."""
    pieces: list[Piece] = []
    base = next((a.form for a in arrays if not walk.on.signs or not a.zero), 0)
    others = []
    for array in arrays:
        zero = walk.on.signs and array.zero
        pieces.append((resolve(array.labels[axis]), base if zero else array.form))
        rest = dropped(array, [axis])
        others.append(Array(rest.labels, base, known=array.known if zero else None))
    found = walk.equal(others)
    label, form = concatenated(pieces)
    labels = list(found.labels)
    labels.insert(axis, label)
    return Array(tuple(labels), form)


@rule("stack")
def stacked(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Arrays are concatenated along a new axis, with one component each."""
    found = walk.equal(args)
    labels = list(found.labels)
    labels.insert(eqn.params["axis"], concatenated([(Uniform(1), 0)] * len(args))[0])
    return replaced(found, labels)


@rule("unstack")
def unstacked(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> list[Array]:
    """Every component of an axis is a result."""
    array, axis = args[0], eqn.params["axis"]
    found = []
    for at in range(array.labels[axis].size):
        _, form = between(walk, array.labels[axis], at, 1)
        found.append(replace(dropped(array, [axis]), form=array.form ^ form))
    return found


@rule("tile")
def tiled(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """The repeats of an axis are a uniform factor."""
    pairs = zip(args[0].labels, eqn.params["reps"], strict=True)
    return replaced(args[0], [product([Uniform(reps), label]) for label, reps in pairs])


@rule("pad")
def padded(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Padding is uniform; padding between entries fixes the axis."""
    array, value = args
    if array.signed and not value.zero:
        walk.plain(array, value)
    labels = []
    for label, (low, high, inner) in zip(array.labels, eqn.params["padding_config"], strict=True):
        size = label.size + low + high + max(label.size - 1, 0) * inner
        if inner or min(low, high) < 0:
            walk.fix(label, "padded between entries")
            labels.append(walk.fixed(size, "padded between entries"))
        else:
            pieces = [(Uniform(low), 0), (resolve(label), 0), (Uniform(high), 0)]
            labels.append(concatenated(pieces)[0])
    return replaced(array, labels)


def between(walk: ProgramWalk, label: Label, first: int, size: int) -> Piece:
    """Label a stretch of an axis, with the form of the array there."""
    label = resolve(label)
    if size == label.size:
        return label, 0
    pieces = walk.on.cut(label, [first, first + size])
    if pieces is None:
        walk.fix(label, "sliced")
        return walk.fixed(size, "sliced"), 0
    start = 0
    found: list[Piece] = []
    for piece in pieces:
        if first <= start < first + size:
            found.append(piece)
        start += piece[0].size
    return concatenated(found)


@rule("slice")
def sliced(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """A stretch of an axis splits the axis."""
    starts, stops = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    labels, whole = [], args[0].form
    for label, start, stop, step in zip(args[0].labels, starts, stops, steps, strict=True):
        count = -(-(stop - start) // step)
        if step == 1 or count == 1:
            found, form = between(walk, label, start, count)
            labels.append(found)
            whole ^= form
        else:
            walk.fix(label, "every few entries are taken")
            labels.append(walk.fixed(count, "every few entries are taken"))
    return Array(tuple(labels), whole)


@rule("split")
def split(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> list[Array]:
    """All stretches of an axis are results."""
    array, axis = args[0], eqn.params["axis"]
    found, start = [], 0
    for size in eqn.params["sizes"]:
        labels = list(array.labels)
        labels[axis], form = between(walk, labels[axis], start, size)
        found.append(Array(tuple(labels), array.form ^ form))
        start += size
    return found


@rule("dynamic_slice")
def dynamic_slice(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """A stretch of an axis at a known place splits the axis."""
    array, *starts = args
    labels, whole = [], array.form
    for label, start, size in zip(array.labels, starts, eqn.params["slice_sizes"], strict=True):
        at = start.number
        if size == label.size:
            labels.append(label)
        elif at is None:
            walk.plain(start)
            walk.fix(label, "sliced at a place that varies")
            labels.append(walk.fixed(size, "sliced at a place that varies"))
        else:
            found, form = between(walk, label, min(max(at, 0), label.size - size), size)
            labels.append(found)
            whole ^= form
    return Array(tuple(labels), whole)


@rule("dynamic_update_slice")
def dynamic_update_slice(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """A stretch of one axis is overwritten; if several axes are cut, they are fixed."""
    array, update, *starts = args
    cut = [at for at, label in enumerate(array.labels) if label.size != update.labels[at].size]
    numbers = [starts[axis].number for axis in cut]
    if len(cut) == 1 and numbers[0] is not None:
        return written(walk, array, update, cut[0], numbers[0])
    if not cut:
        return walk.equal([array, update])
    walk.plain(*args)
    for axis in cut:
        walk.fix(update.labels[axis], "written at a place that varies")
    labels = [
        walk.fix(own, "written at a place that varies") if axis in cut else walk.on.unify(own, new)
        for axis, (own, new) in enumerate(zip(array.labels, update.labels, strict=True))
    ]
    return replaced(array, labels)


def written(walk: ProgramWalk, array: Array, update: Array, axis: int, at: int) -> Array:
    """Overwrite a stretch of one axis, from a known place."""
    label, size = array.labels[axis], update.labels[axis].size
    at = min(max(at, 0), label.size - size)
    stretches = []
    for first, count in ((0, at), (at + size, label.size - at - size)):
        own, form = between(walk, label, first, count)
        labels = (*array.labels[:axis], own, *array.labels[axis + 1 :])
        stretches.append(Array(labels, array.form ^ form, known=array.known))
    parts = [stretches[0], update, stretches[1]]
    return in_stretches(walk, [p for p in parts if p.labels[axis].size], axis)


@rule("gather")
def gathered(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Whole axes are kept, and indexed ones are fixed; the axes of the indices come first."""
    array, indices = args
    how, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    value = indices.value
    what = "indexed" if value is None else "indexed by data"
    walk.plain(indices)
    whole: list[Label] = []
    total = array.form
    diagonal = _diagonal(array, eqn.params, value)
    rows = None if value is None else value.reshape(-1, value.shape[-1])
    single = rows[0] if rows is not None and len(rows) and (rows == rows[0]).all() else None
    along: Label | None = None
    for axis, (label, size) in enumerate(zip(array.labels, sizes, strict=True)):
        if axis in how.operand_batching_dims:
            continue
        if size == label.size:
            taken = label
        elif diagonal is not None and axis in how.collapsed_slice_dims:
            continue
        elif single is not None:
            at = int(single[how.start_index_map.index(axis)])
            taken, form = between(walk, label, min(max(at, 0), label.size - size), size)
            total ^= form
        elif rows is not None and _takes_along(eqn.params, value, axis, label.size):
            along, form = taken_along(walk, label, rows[:, 0])
            total ^= form
            continue
        else:
            walk.fix(label, what)
            taken = walk.fixed(size, what)
        if axis not in how.collapsed_slice_dims:
            whole.append(taken)
    batch = list(walk.even(indices).labels[:-1])
    if along is not None:
        batch = [along]
    if diagonal is not None:
        batch = [walk.on.unify(*diagonal, times=True)]
    for axis, place in zip(how.operand_batching_dims, how.start_indices_batching_dims, strict=True):
        batch[place] = walk.on.unify(array.labels[axis], batch[place], times=True)
    rest, own = iter(batch), dict(zip(how.offset_dims, whole, strict=True))
    every = range(len(whole) + len(batch))
    return Array(tuple(own[at] if at in own else next(rest) for at in every), total)


def _takes_along(p: Any, value: np.ndarray | None, axis: int, size: int) -> bool:
    """Check whether entries of one axis are taken at known places, which come along one axis."""
    how = p["dimension_numbers"]
    if value is None or value.ndim != 2:
        return False
    one = how.start_index_map == how.collapsed_slice_dims == (axis,)
    return bool(one and value.min() >= 0 and value.max() < size)


def taken_along(walk: ProgramWalk, label: Label, places: np.ndarray) -> Piece:
    """Label an axis whose entries were taken from known places of another.

    If all entries are taken equally often, totals over the axis do not depend on the order. Otherwise, or if an order
    counts, the label consists of repeats of the axis, or stretches of neighbours.
    """
    times, rest = divmod(len(places), label.size)
    every = np.arange(label.size)
    for repeat in (np.repeat, np.tile):
        if not rest and np.array_equal(places, repeat(every, times)):
            parts = [label, Uniform(times)]
            return product(parts if repeat is np.repeat else parts[::-1]), 0

    walk.on.why = why = walk.why("indexed by data")

    def in_runs() -> Piece:
        walk.on.why = why
        borders = np.flatnonzero(np.diff(places) != 1) + 1
        runs = [(int(run[0]), len(run)) for run in np.split(places, borders)]
        return concatenated([between(walk, label, *run) for run in runs])

    if len({*np.bincount(places, minlength=label.size)}) > 1:
        return in_runs()
    walk.on.steady(label)
    tangle = Tangle((label,), (len(places),), settle=lambda: [in_runs()[0]])
    return Strand(tangle, 0, len(places)), 0


def _diagonal(array: Array, p: Any, value: np.ndarray | None) -> tuple[Label, Label] | None:
    """Return the labels of the two axes whose diagonal is taken; None if no diagonal is taken."""
    axes, how = p["dimension_numbers"].start_index_map, p["dimension_numbers"]
    if value is None or len(axes) != 2 or value.ndim != 2 or {*how.collapsed_slice_dims} != {*axes}:
        return None
    first, second = (array.labels[axis] for axis in axes)
    every = np.arange(len(value))
    whole = first.size == second.size == len(value) and (value == every[:, None]).all()
    return (first, second) if whole else None


@rule(
    "scatter scatter-add scatter_add scatter-sub scatter_sub scatter-mul scatter_mul scatter-min scatter-max"
)
def scattered(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Axes that are overwritten as a whole are tied to those of the new values; the others are fixed."""
    array, indices, update = args
    how = eqn.params["dimension_numbers"]
    walk.plain(indices)
    axes, value = how.scatter_dims_to_operand_dims, indices.value
    if eqn.primitive.name == "scatter" and value is not None and value.size == len(axes) == 1:
        axis = axes[0]
        if axis in how.inserted_window_dims:
            labels = list(update.labels)
            labels.insert(axis, Uniform(1))
            update = Array(tuple(labels), update.form, known=update.known)
        if len(update.labels) == len(array.labels):
            return written(walk, array, update, axis, int(value.item()))
    form = array.form
    if array.signed or update.signed:
        if array.zero:
            form = update.form
        else:
            walk.on.vanish(array.form ^ update.form)
    if eqn.primitive.name.rpartition("-")[2] in ("mul", "min", "max"):
        walk.plain(array, update)
    inner = iter(how.update_window_dims)
    labels = []
    batch = [at for at in range(len(update.labels)) if at not in how.update_window_dims]
    for axis, label in enumerate(array.labels):
        if axis in how.operand_batching_dims:
            at = how.scatter_indices_batching_dims[how.operand_batching_dims.index(axis)]
            own = walk.on.unify(indices.labels[at], update.labels[batch[at]])
            labels.append(walk.on.unify(label, own))
            continue
        if axis in how.inserted_window_dims:
            labels.append(walk.fix(label, "written at an index"))
            continue
        own = update.labels[next(inner)]
        if own.size == label.size:
            labels.append(walk.on.unify(label, own))
        else:
            walk.fix(own, "written at an index")
            labels.append(walk.fix(label, "written at an index"))
    for place, at in enumerate(batch):
        if place not in how.scatter_indices_batching_dims:
            walk.fix(walk.on.unify(indices.labels[place], update.labels[at]), "written at an index")
    return Array(tuple(labels), form)


@rule("iota")
def counted(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Numbers in order."""
    at = eqn.params["dimension"]
    return Array(
        tuple(
            walk.fixed(size, "counted through") if axis == at else Uniform(size)
            for axis, size in enumerate(eqn.params["shape"])
        )
    )
