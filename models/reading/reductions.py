"""More rules of reading: sums and maxima, products of arrays, decompositions, and programs inside.

They are registered in the table of `rules`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .labels import Label, Uniform, product
from .program import Array, Constant, Operand, ProgramWalk, replaced, unread
from .rules import RULES as RULES
from .rules import dropped, on_axes, rule

# Sums and other reductions.


@rule("reduce_sum")
def summed(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Order along the summed axes does not matter; signs of single terms would change the sum."""
    for axis in eqn.params["axes"]:
        walk.on.steady(args[0].labels[axis])
    return dropped(args[0], eqn.params["axes"])


@rule("reduce_max reduce_min reduce_and reduce_or reduce_xor reduce_prod")
def reduced(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Order along the reduced axes does not matter; any change of sign does."""
    walk.plain(args[0])
    return dropped(args[0], eqn.params["axes"])


@rule("argmax argmin")
def located(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """The index of the largest entry depends on the order along the axis."""
    walk.plain(args[0])
    return dropped(
        on_axes(walk, args[0], eqn.params["axes"], "the place of a maximum along it"),
        eqn.params["axes"],
    )


@rule("cumsum cumprod cummax cummin cumlogsumexp")
def cumulated(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """An axis with a cumulative operation is fixed."""
    if eqn.primitive.name != "cumsum":
        walk.plain(args[0])
    return on_axes(walk, args[0], [eqn.params["axis"]], "added up in order")


@rule("sort")
def ordered(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> list[Array]:
    """Sorted values do not depend on the original order; arrays that are sorted along move with them."""
    axis = eqn.params["dimension"]
    labels = walk.entrywise(args).labels
    found = list(labels)
    found[axis] = walk.fixed(labels[axis].size, "sorted")
    return [Array(tuple(found)) for _ in args]


@rule("top_k")
def largest(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> list[Array]:
    """The largest values do not depend on the original order, but their indices do."""
    axis = eqn.params.get("axis", len(args[0].labels) - 1)
    walk.plain(args[0])
    labels = list(args[0].labels)
    if type(eqn.outvars[1]).__name__ != "DropVar":
        walk.fix(labels[axis], "places of the largest are looked up")
    labels[axis] = walk.fixed(eqn.params["k"], "sorted")
    return [Array(tuple(labels)), Array(tuple(labels))]


@rule(
    "reduce_window_sum reduce_window_max reduce_window_min reduce_window cumred_reduce_window_impl"
)
def windowed(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Any:
    """Axes without a window pass on; axes with a window are fixed, unless it covers the whole axis."""
    array, p = args[0], eqn.params
    if eqn.primitive.name != "reduce_window_sum":
        walk.plain(array)
    if eqn.primitive.name == "reduce_window" and len(args) > 2:
        return unread(walk, eqn, args)
    labels = []
    for axis, label in enumerate(array.labels):
        window, out = p["window_dimensions"][axis], eqn.outvars[0].aval.shape[axis]
        if window == 1 and out == label.size:
            labels.append(label)
        elif out == 1 and window == label.size:
            walk.on.steady(label)
            labels.append(Uniform(1))
        else:
            walk.fix(label, "windows move along it")
            labels.append(walk.fixed(out, "windows move along it"))
    found = replaced(array, labels)
    return [found] if eqn.primitive.multiple_results else found


# Products of arrays.


@rule("dot_general")
def multiplied_out(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Contracted axes are tied, and so are batch axes; the other axes pass on."""
    left, right = args
    (sum_left, sum_right), (with_left, with_right) = eqn.params["dimension_numbers"]
    for a, b in zip(sum_left, sum_right, strict=True):
        walk.on.steady(walk.on.unify(left.labels[a], right.labels[b], times=True))
    both = [
        walk.on.unify(left.labels[a], right.labels[b], times=True)
        for a, b in zip(with_left, with_right, strict=True)
    ]
    others = [
        label
        for array, gone in ((left, {*sum_left, *with_left}), (right, {*sum_right, *with_right}))
        for at, label in enumerate(array.labels)
        if at not in gone
    ]
    return Array((*both, *others), left.form ^ right.form, left.blank or right.blank)


@rule("conv_general_dilated")
def convolved(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Any:
    """Input channels are tied to the kernel's, and output channels pass on; positions are fixed.

    With several groups, channels are a product of the groups and the channels within a group.
    """
    image, kernel = args
    p = eqn.params
    how, groups = p["dimension_numbers"], p["feature_group_count"]
    if p["batch_group_count"] != 1:
        return unread(walk, eqn, args)
    batch, inside = image.labels[how.lhs_spec[0]], image.labels[how.lhs_spec[1]]
    out, within = kernel.labels[how.rhs_spec[0]], kernel.labels[how.rhs_spec[1]]
    if groups > 1:
        lefts = walk.on.factor(inside, groups, inside.size // groups)
        rights = walk.on.factor(out, groups, out.size // groups)
        if lefts is None or rights is None:
            return unread(walk, eqn, args)
        inside = lefts[1]
        out = product([walk.on.unify(lefts[0], rights[0], times=True), rights[1]])
    walk.on.steady(walk.on.unify(inside, within, times=True))
    labels: list[Label] = [Uniform(1)] * len(image.labels)
    labels[how.out_spec[0]], labels[how.out_spec[1]] = batch, out
    shape = eqn.outvars[0].aval.shape
    for axis, kernel_axis, place in zip(
        how.lhs_spec[2:], how.rhs_spec[2:], how.out_spec[2:], strict=True
    ):
        label, size = image.labels[axis], shape[place]
        if kernel.labels[kernel_axis].size == 1 and size == label.size:
            labels[place] = label
            continue
        walk.fix(label, "a convolution along it")
        walk.fix(kernel.labels[kernel_axis], "a convolution along it")
        labels[place] = walk.fixed(size, "a convolution along it")
    return Array(tuple(labels), image.form ^ kernel.form, image.blank or kernel.blank)


@rule("fft")
def transformed(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Transformed axes are fixed."""
    count, rank = len(eqn.params["fft_lengths"]), len(args[0].labels)
    found = on_axes(walk, args[0], range(rank - count, rank), "Fourier transformed")
    sizes = eqn.outvars[0].aval.shape
    labels = [
        walk.fixed(size, "Fourier transformed") if axis >= rank - count else label
        for axis, (label, size) in enumerate(zip(found.labels, sizes, strict=True))
    ]
    return replaced(found, labels)


@rule("triangular_solve")
def solved(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Array:
    """Axes of the matrix are fixed; columns of the right-hand side pass on."""
    matrix, right = args
    what = "a triangular system is solved along it"
    walk.plain(matrix)
    matrix = on_axes(walk, matrix, (-1, -2), what)
    rank = len(right.labels)
    right = on_axes(walk, right, [rank - (2 if eqn.params["left_side"] else 1)], what)
    pairs = zip(matrix.labels[:-2], right.labels[:-2], strict=True)
    batch = [walk.on.unify(*pair, times=True) for pair in pairs]
    return replaced(right, [*batch, *right.labels[-2:]])


@rule(
    "cholesky lu qr eigh eig svd schur householder_product geqrf tridiagonal lu_pivots_to_permutation"
)
def decomposed(walk: ProgramWalk, eqn: Any, args: Sequence[Array]) -> Any:
    """Axes of matrices are fixed, and leading axes pass on."""
    what = f"a matrix decomposition (`{eqn.primitive.name}`)"
    walk.plain(*args)
    core = 1 if eqn.primitive.name == "lu_pivots_to_permutation" else 2
    for array in args:
        on_axes(walk, array, range(-min(core, len(array.labels)), 0), what)
    batch = list(args[0].labels[: len(args[0].labels) - core])
    found = [
        Array((*batch, *(walk.fixed(size, what) for size in var.aval.shape[len(batch) :])))
        for var in eqn.outvars
    ]
    return found if eqn.primitive.multiple_results else found[0]


# Programs inside.


@rule("scan")
def scanned(walk: ProgramWalk, eqn: Any, args: Sequence[Operand]) -> list[Array]:
    """A loop fixes its axis; the values that it carries are iterated until their labels stay the same."""
    p = eqn.params
    first, second = (len(list(tree)) for tree in p["ft_in"].unpack()[:2])
    consts, carry = args[:first], args[first : first + second]
    rows = []
    for array in map(walk.labelled, args[first + second :]):
        walk.fix(array.labels[0], "gone through in order")
        rows.append(replaced(array, array.labels[1:]))

    def body(held: list[Array]) -> list[Operand]:
        return walk.inner(p["jaxpr"], [*consts, *held, *rows])[:second]

    held = walk.settled(carry, body)
    found = [walk.labelled(each) for each in walk.inner(p["jaxpr"], [*consts, *held, *rows])]
    count = p["length"]
    along = [
        replaced(each, (walk.fixed(count, "gone through in order"), *each.labels))
        for each in found[second:]
    ]
    return [*found[:second], *along]


# A choice by the processor type; all programs give the same result.
rule("platform_index")(
    lambda walk, eqn, args: Constant(np.asarray(eqn.params["platforms"].index(None)))
)


@rule("while")
def repeated(walk: ProgramWalk, eqn: Any, args: Sequence[Operand]) -> list[Array]:
    """A loop until a condition holds."""
    p = eqn.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]

    def body(held: list[Array]) -> list[Operand]:
        walk.plain(*map(walk.labelled, walk.inner(p["cond_jaxpr"], [*args[:first], *held])))
        return walk.inner(p["body_jaxpr"], [*args[first:second], *held])

    return walk.settled(list(args[second:]), body)


@rule("custom_linear_solve")
def solved_inside(walk: ProgramWalk, eqn: Any, args: Sequence[Operand]) -> list[Operand]:
    """A linear system: the program that solves it is read."""
    lengths = eqn.params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    own = args[first : first + lengths.solve]
    return walk.inner(eqn.params["jaxprs"].solve, [*own, *args[sum(lengths) :]])


@rule("cond")
def branched(walk: ProgramWalk, eqn: Any, args: Sequence[Operand]) -> list[Operand]:
    """Branches have the same result, in one program or another."""
    which, *operands = args
    if isinstance(which, Constant):
        branches = eqn.params["branches"]
        at = int(np.clip(np.asarray(which.value), 0, len(branches) - 1))
        return walk.inner(branches[at], operands)
    walk.plain(walk.labelled(which))
    branches = (walk.inner(branch, operands) for branch in eqn.params["branches"])
    found = [[walk.labelled(each) for each in branch] for branch in branches]
    return [walk.equal(each) for each in zip(*found, strict=True)]
