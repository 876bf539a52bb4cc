"""Random JAX programs and their symmetries by brute force, to which tests compare the result of reading a program.

A program builds arrays from a few small parameters with about twenty kinds of steps, and sums the results. Brute force
tries all sets of axes of equal length, with swaps of the first component and each other one, and all sets of signs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.base.precision import precision
from onebasin.models.reading.read import ReadSymmetry, read
from onebasin.models.symmetry.elements import echelon, reduce

Values = Mapping[str, jax.Array]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class RandomProgram:
    """A function of named arrays, with their shapes."""

    function: Callable[[Values], jax.Array]
    shapes: Shapes
    steps: tuple[str, ...]


LENGTHS = (2, 3)
SCALES = (0.2, 0.7, 1.7, 2.7, 3.7)
"""Scales of the points at which brute force compares; with fewer, a mask or a branch may be the same at all points."""
CURVES = {
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "exp": lambda x: jnp.exp(-jnp.abs(x)),
    "abs": jnp.abs,
    "square": jnp.square,
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "softplus": jax.nn.softplus,
    "cube": lambda x: x**3,
}


def random_program(
    seed: int, steps: int = 8, deep: bool = False, odd: bool = False
) -> RandomProgram:
    """Make a program with this number of steps; `deep` adds loops, convolutions and branches, `odd` rare steps."""
    rng = np.random.default_rng(seed)
    shapes: Shapes = {}
    for at in range(rng.integers(2, 5)):
        shapes[f"p{at}"] = tuple(int(n) for n in rng.choice(LENGTHS, size=rng.integers(1, 3)))
    kinds = [*PLAIN, *(DEEP * 2 if deep else ()), *(ODD if odd else ())]
    plan = [(str(rng.choice(kinds)), int(rng.integers(2**31))) for _ in range(steps)]
    weights = rng.normal(size=64)

    def function(values: Values) -> jax.Array:
        pool = [values[name] for name in shapes]
        for kind, own in plan:
            made = {**STEPS, **ODD}[kind](np.random.default_rng(own), pool)
            if made is not None and made.ndim <= 3 and made.size <= 64:
                pool.append(made)
        total = -0.5 * sum(jnp.sum(values[name] ** 2) for name in shapes)
        for weight, array in zip(weights, pool[len(shapes) :], strict=False):
            total = total + weight * jnp.sum(jnp.cos(array) if weight > 0 else array**3 + array)
        return total

    return RandomProgram(function, shapes, tuple(kind for kind, _ in plan))


def _one(rng, pool):
    return pool[rng.integers(len(pool))]


def _alike(rng, pool, array):
    some = [other for other in pool if other.shape == array.shape]
    return some[rng.integers(len(some))]


def _curve(rng, pool):
    return CURVES[rng.choice([*CURVES])](_one(rng, pool))


def _add(rng, pool):
    array = _one(rng, pool)
    return array + _alike(rng, pool, array)


def _multiply(rng, pool):
    array = _one(rng, pool)
    return array * _alike(rng, pool, array)


def _outer(rng, pool):
    a, b = _one(rng, pool), _one(rng, pool)
    if a.ndim + b.ndim > 3:
        return None
    return a.reshape(*a.shape, *(1,) * b.ndim) + b


def _dot(rng, pool):
    pairs = [
        (a, b, i, j)
        for a in pool
        for b in pool
        for i in range(a.ndim)
        for j in range(b.ndim)
        if a.shape[i] == b.shape[j] and a.ndim + b.ndim <= 5
    ]
    if not pairs:
        return None
    a, b, i, j = pairs[rng.integers(len(pairs))]
    return jnp.tensordot(a, b, axes=(i, j))


def _data(rng, pool):
    array = _one(rng, pool)
    if not array.ndim:
        return array * 1.5
    axis = rng.integers(array.ndim)
    shape = [1] * array.ndim
    shape[axis] = array.shape[axis]
    given = rng.normal(size=shape)
    return array + given if rng.integers(2) else array * given


def _sum(rng, pool):
    array = _one(rng, pool)
    axis = rng.integers(array.ndim) if array.ndim else None
    return (jnp.sum, jnp.max, jax.nn.logsumexp, jnp.mean)[rng.integers(4)](array, axis=axis)


def _softmax(rng, pool):
    array = _one(rng, pool)
    axis = rng.integers(array.ndim) if array.ndim else 0
    # For two entries, this is a tanh of their difference, which cannot be read from a program.
    return jax.nn.softmax(array, axis=axis) if array.ndim and array.shape[axis] > 2 else None


def _transpose(rng, pool):
    array = _one(rng, pool)
    return jnp.transpose(array, rng.permutation(array.ndim))


def _reshape(rng, pool):
    array = _one(rng, pool)
    shapes = {(array.size,), (2, -1), (3, -1), (-1, 2), (-1, 3)}
    fitting = sorted(s for s in shapes if array.size % abs(int(np.prod([abs(n) for n in s]))) == 0)
    return array.reshape(fitting[rng.integers(len(fitting))])


def _concatenate(rng, pool):
    array = _one(rng, pool)
    if not array.ndim:
        return jnp.stack([array, _alike(rng, pool, array)])
    return jnp.concatenate([array, _alike(rng, pool, array)], axis=rng.integers(array.ndim))


def _slice(rng, pool):
    array = _one(rng, pool)
    if not array.ndim:
        return None
    axis = rng.integers(array.ndim)
    first, last = (
        sorted(rng.choice(array.shape[axis] + 1, size=2, replace=False))
        if array.shape[axis]
        else (0, 0)
    )
    return jax.lax.slice_in_dim(array, int(first), int(last), axis=int(axis))


def _take(rng, pool):
    array = _one(rng, pool)
    if not array.ndim:
        return None
    axis = int(rng.integers(array.ndim))
    return jnp.take(array, rng.integers(array.shape[axis], size=3), axis=axis)


def _sort(rng, pool):
    array = _one(rng, pool)
    # The evenness of a sum of even functions of sorted values cannot be read from a program.
    return 0.3 + jnp.sort(array, axis=int(rng.integers(array.ndim))) if array.ndim else None


def _cumulate(rng, pool):
    array = _one(rng, pool)
    return jnp.cumsum(array, axis=int(rng.integers(array.ndim))) if array.ndim else None


def _mask(rng, pool):
    array = _one(rng, pool)
    other = _alike(rng, pool, array)
    return jnp.where(array > 0.1, other, 0.0)


def _eye(rng, pool):
    square = [a for a in pool if a.ndim == 2 and a.shape[0] == a.shape[1]]
    if not square:
        return None
    array = square[rng.integers(len(square))]
    return array * jnp.eye(array.shape[0]) if rng.integers(2) else jnp.diagonal(array)


def _pad(rng, pool):
    array = _one(rng, pool)
    value = float(rng.integers(2))
    return jnp.pad(array, [(1, 0)] * array.ndim, constant_values=value) if array.ndim else None


def _write(rng, pool):
    array = _one(rng, pool)
    return array.at[0].set(0.5) if array.ndim else None


def _scan(rng, pool):
    array = _one(rng, pool)
    other = _alike(rng, pool, array)
    given = rng.normal(size=3)

    def step(carry, x):
        new = jnp.tanh(carry + x * other)
        return new, jnp.sum(new)

    end, sums = jax.lax.scan(step, array if rng.integers(2) else jnp.zeros(array.shape), given)
    return end if rng.integers(2) else sums


def _convolve(rng, pool):
    kernels = [a for a in pool if a.ndim == 3]
    if not kernels:
        return None
    kernel = kernels[rng.integers(len(kernels))]
    images = [a for a in pool if a.ndim == 3 and a.shape[2] == kernel.shape[1]]
    image = (
        images[rng.integers(len(images))]
        if images
        else jnp.asarray(rng.normal(size=(2, 3, kernel.shape[1])))
    )
    padding = ("SAME", "VALID")[rng.integers(2)]
    if padding == "VALID" and image.shape[1] < kernel.shape[0]:
        return None
    return jax.lax.conv_general_dilated(
        image, kernel, (1,), padding, dimension_numbers=("NWC", "WIO", "NWC")
    )


def _branch(rng, pool):
    array = _one(rng, pool)
    other = _alike(rng, pool, array)
    test = jnp.sum(_one(rng, pool) ** 2)
    return jax.lax.cond(test > 1.0, lambda: array * 2.0, lambda: other + array)


def _loop(rng, pool):
    array = _one(rng, pool)
    return jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) + array / (i + 1), array)


def _along(call):
    """Make a step that applies a function along one axis of an array."""

    def step(rng, pool):
        array = _one(rng, pool)
        return call(array, int(rng.integers(array.ndim))) if array.ndim else None

    return step


def _square(call):
    """Make a step that applies a function to a positive definite matrix."""

    def step(rng, pool):
        found = [a for a in pool if a.ndim == 2]
        if not found:
            return None
        array = found[rng.integers(len(found))]
        return call(array @ array.T + jnp.eye(len(array)))

    return step


def _argsort(array, axis):
    return jnp.take_along_axis(array**2, jnp.argsort(array, axis=axis), axis=axis)


def _segments(array, axis):
    return jax.ops.segment_sum(jnp.moveaxis(array, axis, 0), jnp.arange(array.shape[axis]) // 2, 2)


def _largest(array, axis):
    return jax.lax.top_k(jnp.moveaxis(array, axis, -1), 2)[0]


def _stepped(array, axis):
    def body(state):
        count, value = state
        return count + 1, jnp.roll(value, 1, axis=axis) * 0.5 + array

    return jax.lax.while_loop(lambda state: state[0] < 2, body, (0, array))[1]


def _sliced_where(array, axis):
    at = jnp.argmax(jnp.sum(array, axis=tuple(k for k in range(array.ndim) if k != axis)))
    return jax.lax.dynamic_slice_in_dim(array, at, 1, axis=axis)


def _batched(rng, pool):
    array = _one(rng, pool)
    other = _alike(rng, pool, array)
    if array.ndim < 2:
        return None
    return jax.vmap(lambda a, b: a[jnp.argsort(b.ravel())[: len(a)] % len(a)])(array, other)


ODD = {
    "solve": _square(lambda m: jnp.linalg.solve(m, jnp.ones(len(m)))),
    "cholesky": _square(jnp.linalg.cholesky),
    "determinant": _square(lambda m: jnp.linalg.slogdet(m)[1]),
    "spectrum": _square(jnp.linalg.eigvalsh),
    "argsort": _along(_argsort),
    "segments": _along(_segments),
    "largest": _along(_largest),
    "stepped": _along(_stepped),
    "sliced": _along(_sliced_where),
    "roll": _along(lambda a, k: jnp.roll(a, 1, axis=k)),
    "flip": _along(lambda a, k: jnp.flip(a, axis=k)),
    "repeat": _along(lambda a, k: jnp.repeat(a, 2, axis=k)),
    "tile": lambda rng, pool: jnp.tile(_one(rng, pool), 2),
    "norm": _along(lambda a, k: a / (1 + jnp.linalg.norm(a, axis=k, keepdims=True))),
    "centre": _along(lambda a, k: a - a.mean(k, keepdims=True)),
    "every other": _along(lambda a, k: jax.lax.slice_in_dim(a, 0, None, 2, axis=k)),
    "write inside": _along(lambda a, k: jnp.moveaxis(a, k, 0).at[1:].add(1.0)),
    "multiply inside": _along(lambda a, k: jnp.moveaxis(a, k, 0).at[0].mul(a.sum())),
    "spectral": _along(lambda a, k: jnp.abs(jnp.fft.fft(a, axis=k))),
    "batched": _batched,
    "cumulated back": _along(lambda a, k: jax.lax.cumlogsumexp(a, axis=k, reverse=True)),
    "one-hot": _along(lambda a, k: a * jax.nn.one_hot(jnp.argmax(a, axis=k), a.shape[k], axis=k)),
    "outer product": lambda rng, pool: jnp.outer(_one(rng, pool).ravel()[:3], _one(rng, pool)),
    "pieces": _along(lambda a, k: jnp.split(a, [1], axis=k)[1]),
    "unstacked": lambda rng, pool: (lambda a: a[0] * a[-1] if a.ndim else None)(_one(rng, pool)),
}  # fmt: skip
"""Steps that are rare in models; tests with them only look for false symmetries."""

STEPS = {
    "curve": _curve, "add": _add, "multiply": _multiply, "outer": _outer, "dot": _dot, "data": _data, "sum": _sum,
    "softmax": _softmax, "transpose": _transpose, "reshape": _reshape, "concatenate": _concatenate, "slice": _slice,
    "take": _take, "sort": _sort, "cumulate": _cumulate, "mask": _mask, "eye": _eye, "pad": _pad, "write": _write,
    "scan": _scan, "convolve": _convolve, "branch": _branch, "loop": _loop,
}  # fmt: skip
DEEP = ["scan", "convolve", "branch", "loop"]
PLAIN = [kind for kind in STEPS if kind not in DEEP] + [
    "curve",
    "curve",
    "add",
    "multiply",
    "dot",
    "dot",
]


@dataclass(frozen=True)
class Verdict:
    """Numbers of symmetries in a program and of those that reading found, with the false ones."""

    permutations: int
    permutations_found: int
    signs: int
    signs_found: int
    false: tuple[str, ...]


def _is_whole(part, shape):
    return part.stride == part.repeats == 1 and part.count == shape[part.axis]


def index_of(part, length):
    """Return the component of each position of an axis, or -1 if it has none."""
    found = np.full(length, -1)
    for repeat in range(part.repeats):
        for component in range(part.count):
            first = part.start + repeat * part.period + component * part.stride
            found[first : first + part.stride] = component
    return found


def permuted(values, places, order):
    """Return values with components permuted along all given axes."""
    moved = dict(values)
    for name, parts in places.items():
        for part in parts:
            own = index_of(part, moved[name].shape[part.axis])
            to = np.arange(len(own))
            to = np.where(own >= 0, to + (np.asarray(order)[own] - own) * part.stride, to)
            moved[name] = np.take(moved[name], to, axis=part.axis)
    return moved


def signed(values, places, signs):
    """Return values with signs of components changed along all given axes."""
    moved = dict(values)
    for name, part in places:
        own = index_of(part, moved[name].shape[part.axis])
        factor = np.where(own >= 0, np.asarray(signs)[own], 1.0)
        shape = [1] * moved[name].ndim
        shape[part.axis] = len(own)
        moved[name] = moved[name] * factor.reshape(shape)
    return moved


def judge(program: RandomProgram, found: ReadSymmetry, seed: int = 0) -> Verdict:
    """Compare the result of reading with brute force."""
    rng = np.random.default_rng(seed)
    points = [
        {n: rng.normal(size=s) * scale for n, s in program.shapes.items()} for scale in SCALES
    ]
    evaluate = jax.jit(jax.vmap(program.function))

    def values_of(moved: list[dict[str, np.ndarray]]) -> np.ndarray:
        rows = {n: np.stack([m[n] for m in moved]) for n in program.shapes}
        size = -(-len(moved) // 64) * 64
        rows = {n: np.concatenate([v, np.repeat(v[:1], size - len(v), 0)]) for n, v in rows.items()}
        return np.concatenate(
            [
                np.asarray(evaluate({n: v[at : at + 64] for n, v in rows.items()}))
                for at in range(0, size, 64)
            ]
        )[: len(moved)]

    here = values_of(points)

    def holds(moves: list) -> np.ndarray:
        """Return, for each move (a function of values), whether it leaves the program's function unchanged."""
        moved = [move(point) for move in moves for point in points]
        there = values_of(moved).reshape(len(moves), -1) if moves else np.empty((0, len(SCALES)))
        return (np.abs(there - here) <= 1e-9 * (1 + np.abs(here))).all(axis=1)

    claims, said = [], []
    for each in found.classes:
        for other in range(1, each.size):
            order = np.arange(each.size)
            order[[0, other]] = other, 0
            claims.append(lambda v, e=each, o=order: permuted(v, e.places, o))
            said.append(f"permutation of {dict(each.places)}")
        for own in each.signs:
            signs = np.where(np.arange(each.size) == 0, -1.0, 1.0)
            claims.append(lambda v, o=own, s=signs: signed(v, o, s))
            said.append(f"signs of {own}")
    for own in found.flips:
        claims.append(lambda v, o=own: {n: -x if n in o else x for n, x in v.items()})
        said.append(f"signs of {own}")
    false = tuple(text for text, good in zip(said, holds(claims), strict=True) if not good)

    total = got = 0
    for length in LENGTHS:
        axes = [
            (n, a) for n, s in program.shapes.items() for a, size in enumerate(s) if size == length
        ]
        sets = [c for k in range(1, len(axes) + 1) for c in combinations(axes, k)]
        good = np.ones(len(sets), bool)
        for other in range(1, length):
            order = np.arange(length)
            order[[0, other]] = other, 0

            def swap(values, chosen, order=order):
                moved = dict(values)
                for name, axis in chosen:
                    moved[name] = np.take(moved[name], order, axis=axis)
                return moved

            good &= holds([lambda v, c=c, s=swap: s(v, c) for c in sets])
        place = {axis: 1 << at for at, axis in enumerate(axes)}
        real = echelon(
            [sum(place[a] for a in c) for c, is_one in zip(sets, good, strict=True) if is_one]
        )
        read = echelon(
            [
                sum(place[n, p.axis] for n, ps in e.places.items() for p in ps)
                for e in found.classes
                if e.size == length
                and all(_is_whole(p, program.shapes[n]) for n, ps in e.places.items() for p in ps)
            ]
        )
        total += len(real)
        got += sum(1 for vector in real if not reduce(vector, read))
    names = list(program.shapes)
    sets = [c for k in range(1, len(names) + 1) for c in combinations(names, k)]
    good = holds([lambda v, c=c: {n: -x if n in c else x for n, x in v.items()} for c in sets])
    real = echelon(
        [
            sum(1 << names.index(n) for n in c)
            for c, is_one in zip(sets, good, strict=True)
            if is_one
        ]
    )
    read = echelon([sum(1 << names.index(n) for n in own) for own in found.flips])
    return Verdict(total, got, len(real), sum(1 for v in real if not reduce(v, read)), false)


def counted(seeds, **kind):
    """Count symmetries of random programs, those that reading found, and false ones."""
    total, found, false = 0, 0, []
    with precision("float64"), jax.numpy_rank_promotion("allow"):
        for seed in seeds:
            program = random_program(seed, **kind)
            verdict = judge(program, read(program.function, program.shapes))
            total += verdict.permutations + verdict.signs
            found += verdict.permutations_found + verdict.signs_found
            false += [(seed, each) for each in verdict.false]
    return total, found, false
