"""The scalar parameters of a posterior as columns: names, draws, angles, and checks.

Draws are (chain, draw, param) in float64. A parameter is one scalar entry of a variable, such as `W1[0,1]`, named by
its coordinate labels if the variable has them, and otherwise by its position, counted from 0. An entry that is finite
in no draw, such as the unset triangle of a matrix, is not a parameter. Draws in a file are read block by block.

The range of an angle is a circle that is cut at one point. Draws around the cut lie at both ends of the range, and
their plain mean lies on the wrong side of the circle. Their density is the same on both sides of the cut. The draws of
a parameter and its mirror image look similar, but they thin out in tails before they reach the cut.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.base.errors import ArgumentError

from .schema import SAMPLE_DIMS

CUTS = ((-np.pi, 2 * np.pi), (0.0, 2 * np.pi), (-180.0, 360.0), (0.0, 360.0))
"""The point where each circle is cut, and the length of the circle."""
REACH = 0.02
"""The smallest and the largest draw must lie within this share of the circle from the ends."""
NEAREST, UP_TO = 40, 0.71
"""The number of draws nearest to the cut to use on each side, and the limit for the mean of their distances divided by
the largest distance. The ratio is a half if the density continues across the cut, and larger in a tail."""
CLOSE, LEAST = 0.1, 0.1
"""The share of all draws that counts as close to the cut, and the minimum share of these on each side."""
OUTLIER, BESIDE, BEYOND = 12.0, 10, 0.4
"""Limits for a few draws beyond the cut: the distance of the nearest one from the cut may be at most 12 times
the mean spacing of the 10 draws before the cut. The median distance may be at most 0.4 times that of the other
draws."""
MOVED = 0.2
"""If more than this share of the draws lies beyond the cut, the mean is placed between -1/4 and 3/4 of a circle."""


@dataclass(frozen=True)
class Circle:
    """The length of an angle's circle, with the circular mean and standard deviation of the draws."""

    period: float
    mean: float
    sd: float

    def unwrapped(self, values: Float[np.ndarray, "*draws"]) -> Float[np.ndarray, "*draws"]:
        """Return angles within half a circle of the mean."""
        return values - self.period * np.rint((values - self.mean) / self.period)


def circles_of(values: Float[np.ndarray, "chain draw column"]) -> dict[int, Circle]:
    """Find the columns that are angles whose draws meet across the cut of a circle."""
    found = {}
    low, high = (f(values, axis=(0, 1)) for f in (np.min, np.max)) if values.size else ((), ())
    for first, period in CUTS:
        ends = np.stack([np.subtract(low, first), np.subtract(first + period, high)])
        near = ((ends >= -1e-6 * period) & (ends <= REACH * period)).all(axis=0)
        for place in np.flatnonzero(near).tolist():
            column = values[..., place]
            if place not in found and _meet(np.unique(column), first, period):
                found[place] = _circle(column, first, period)
    return found


def unwrapped(values: Float[np.ndarray, "chain draw *event"]) -> np.ndarray:
    """Shift the entries that are angles to within half a circle of their means."""
    flat = values.reshape(*values.shape[:2], -1)
    for place, circle in (found := circles_of(flat)).items():
        flat = flat.copy() if place == next(iter(found)) else flat
        flat[..., place] = circle.unwrapped(flat[..., place])
    return flat.reshape(values.shape)


def _circle(values: Float[np.ndarray, "chain draw"], first: float, period: float) -> Circle:
    unit = 2 * np.pi / period
    mean = np.exp(1j * unit * values).mean()
    centre = first + (float(np.angle(mean)) / unit - first) % period
    circle = Circle(period, centre, float(np.sqrt(-2 * np.log(abs(mean)))) / unit)
    if (circle.unwrapped(values) != values).mean() > MOVED:
        centre = (centre + period / 4) % period - period / 4
    return Circle(period, centre, circle.sd)


def _meet(ordered: Float[np.ndarray, " draw"], first: float, period: float) -> bool:
    """Check, from the distances to the cut on both sides, whether ordered distinct draws meet across it."""
    sides = [np.abs(ordered - first), np.abs(first + period - ordered)[::-1]]
    gaps = np.diff(ordered)
    below = int(gaps.argmax()) + 1
    few, many = sorted((sides[0][:below], sides[1][: len(ordered) - below]), key=len)
    if gaps.max() > period / 3 and len(few) < NEAREST:
        # A tail lies beyond the cut, rather than a mirror image.
        far = OUTLIER * many[:BESIDE].max() / len(many[:BESIDE])
        return bool(few[0] <= far and np.median(few) <= BEYOND * np.median(many))
    if len(ordered) < 2 * NEAREST or (ordered == np.rint(ordered)).all():
        return False
    count = round(CLOSE * len(ordered))
    close = np.sort(np.concatenate(sides))[count - 1]
    return all(
        side[:NEAREST].mean() <= UP_TO * side[NEAREST - 1] and (side <= close).sum() > LEAST * count
        for side in sides
    )


MIN_DRAWS = 4
BLOCK_BYTES = 2**21
"""Approximate number of bytes to read at a time."""

PerEntry = Float[np.ndarray, " entry"]


@dataclass(frozen=True, eq=False)
class Columns:
    """The entries of variables (chain, draw, ...) as columns."""

    variables: Sequence[xr.DataArray]  # With chain and draw first, in memory or in a file.
    kept: Int[np.ndarray, " column"] | None = None  # The entries to use as columns; None for all.
    # The value of each column that is constant up to rounding, and NaN for the others; None if all vary.
    fixed: Float[np.ndarray, " column"] | None = None
    circles: Mapping[int, Circle] = field(default_factory=dict)  # The columns that are angles.

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of chains, draws and columns."""
        chains, draws = self.variables[0].shape[:2]
        if self.kept is not None:
            return chains, draws, len(self.kept)
        return chains, draws, sum(prod(variable.shape[2:]) for variable in self.variables)

    def read(self, first: int, last: int) -> Float[np.ndarray, "chain draw column"]:
        """Read the columns from `first` up to, but not including, `last`."""
        if self.kept is None:
            return self._steady(self._entries(first, last), slice(first, last))
        kept = self.kept[first:last]
        out = np.empty((*self.shape[:2], len(kept)))
        runs = np.split(np.arange(len(kept)), np.flatnonzero(np.diff(kept) > 1) + 1)
        for run in runs if len(kept) else ():
            out[..., run[0] : run[-1] + 1] = self._entries(
                int(kept[run[0]]), int(kept[run[-1]]) + 1
            )
        return self._steady(out, slice(first, last))

    def _steady(self, values: np.ndarray, part: slice) -> np.ndarray:
        """Fix constant columns, and unwrap angles."""
        if self.fixed is not None:
            values = np.where(np.isnan(self.fixed[part]), values, self.fixed[part])
        for column, circle in self.circles.items():
            place = column - (part.start or 0)
            if 0 <= place < values.shape[-1]:
                values[..., place] = circle.unwrapped(values[..., place])
        return values

    def _entries(self, first: int, last: int) -> Float[np.ndarray, "chain draw column"]:
        """Read the entries from `first` up to, but not including, `last`, whether or not they are columns."""
        chains, draws, _ = self.shape
        out = np.empty((chains, draws, last - first))
        done, place = 0, int(np.searchsorted(self._ends, first, side="right"))
        while done < last - first:
            variable, end = self.variables[place], int(self._ends[place])
            begin = end - prod(variable.shape[2:])
            low, high = max(first - begin, 0), min(last, end) - begin
            values = variable.variable
            if values.ndim > 2:  # Read whole rows of the first axis.
                size = prod(values.shape[3:])
                row = low // size
                values = values[:, :, row : -(-high // size)]
                low, high = low - row * size, high - row * size
            part = values.values.reshape(chains, draws, -1)[..., low:high]
            out[..., done : done + part.shape[2]] = part
            done, place = done + part.shape[2], place + 1
        return out

    @cached_property
    def _ends(self) -> Int[np.ndarray, " variable"]:
        """The cumulative number of entries at the end of each variable."""
        return np.cumsum([prod(variable.shape[2:]) for variable in self.variables])

    def rows(self, chain: int, draws: slice) -> Float[np.ndarray, "draw column"]:
        """Read all columns of some draws of one chain."""
        pieces = [variable.variable[chain, draws].values for variable in self.variables]
        flat = [piece.reshape(len(piece), prod(piece.shape[1:])) for piece in pieces]
        rows = np.concatenate(flat, axis=1, dtype=np.float64)
        rows = rows if self.kept is None else rows[:, self.kept]
        return self._steady(rows, slice(None))


@dataclass(frozen=True, eq=False)
class Draws:
    """The scalar parameters of a posterior as named columns."""

    names: tuple[str, ...]  # Such as `W1[0,1]`.
    source: Float[np.ndarray, "chain draw param"] | Columns  # An array, or columns to read.
    undefined: tuple[str, ...] = ()  # Omitted entries, which are finite in no draw.
    broken: Mapping[str, int] = field(default_factory=dict)
    """The number of draws that are not finite, for each parameter that has any."""

    @property
    def circles(self) -> dict[str, Circle]:
        """The circles of parameters that are angles. Their draws lie within half a circle of the mean."""
        found = self.source.circles if isinstance(self.source, Columns) else {}
        return {self.names[place]: circle for place, circle in found.items()}

    @property
    def num_chains(self) -> int:
        """The number of chains."""
        return self.source.shape[0]

    @property
    def num_draws(self) -> int:
        """The number of draws in each chain."""
        return self.source.shape[1]

    @property
    def values(self) -> Float[np.ndarray, "chain draw param"]:
        """All draws of all parameters in one array."""
        return self.read(slice(0, len(self.names)))

    def of(self, name: str) -> Float[np.ndarray, "chain draw"]:
        """Return the draws of one parameter."""
        place = self.names.index(name)
        return self.read(slice(place, place + 1))[..., 0]

    def read(self, part: slice) -> Float[np.ndarray, "chain draw param"]:
        """Return the draws of consecutive parameters."""
        if isinstance(self.source, Columns):
            return self.source.read(part.start, part.stop)
        return self.source[..., part]

    def every(self, step: int) -> Float[np.ndarray, "kept param"]:
        """Return every `step`-th draw of each chain, counted back from the last draw."""
        if not isinstance(self.source, Columns):
            return self.source[:, ::-1][:, ::step].reshape(-1, len(self.names))
        chosen = slice((self.num_draws - 1) % step, None, step)
        rows = [self.source.rows(chain, chosen)[::-1] for chain in range(self.num_chains)]
        return np.concatenate(rows)

    def parts(self, *others: Draws) -> Iterator[slice]:
        """Split the parameters into blocks of limited size, for these draws and for those of `others`."""
        longest = max(draws.num_chains * draws.num_draws for draws in (self, *others))
        step = max(1, BLOCK_BYTES // (8 * max(longest, 1)))
        for first in range(0, len(self.names), step):
            yield slice(first, min(first + step, len(self.names)))

    def blocks(self) -> Iterator[Float[np.ndarray, "chain draw param"]]:
        """Iterate over the draws in blocks of parameters."""
        return map(self.read, self.parts())


ROUNDING = 8.0
"""Numbers that differ by at most this many units in the last place count as equal, such as sums of a simplex."""
RECUR = 0.9
"""If the ratio of distinct numbers to moves of a chain is below this value, numbers recur. The draws of a continuous
parameter never do that."""


Counts = Int[np.ndarray, " column"]


def distinct_and_moves(values: Float[np.ndarray, "chain draw column"]) -> tuple[Counts, Counts]:
    """Count, for each column, the distinct numbers and the draws that differ from the previous draw."""
    moves = len(values) + (values[:, 1:] != values[:, :-1]).sum(axis=(0, 1))
    ordered = np.sort(values.reshape(-1, values.shape[2]), axis=0)
    return 1 + (ordered[1:] != ordered[:-1]).sum(axis=0), moves


def lay_out_columns(variables: Sequence[xr.DataArray]) -> Draws:
    """Arrange the entries of variables (chain, draw, ...) as columns; omit entries that are finite in no draw."""
    names = tuple(name for variable in variables for name in entry_names(variable))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(
            f"Two parameters of the posterior would both be named {twice}. Rename one of them."
        )
    draws = Draws(names, Columns(variables))
    # The relative precision of entries stored below double precision; 0 for the others.
    rounding = [
        np.finfo(v.dtype).eps if v.dtype.kind == "f" and v.dtype.itemsize < 8 else 0.0
        for v in variables
    ]
    eps = np.repeat(rounding, [prod(v.shape[2:]) for v in variables])
    bad, fixed = np.zeros(len(names), int), np.full(len(names), np.nan)
    (low, high), circles = np.zeros((2, len(names))), dict[int, Circle]()
    with np.errstate(over="ignore", invalid="ignore"):
        for part, values in zip(draws.parts(), draws.blocks(), strict=True):
            bad[part] = (~np.isfinite(values)).sum(axis=(0, 1))
            low[part], high[part] = values.min(axis=(0, 1)), values.max(axis=(0, 1))
            circles |= {part.start + k: circle for k, circle in circles_of(values).items()}
        size, apart = np.maximum(np.abs(low), np.abs(high)), high - low
        still = (apart <= ROUNDING * eps * size) & (eps > 0)
    # Round to 20 bits, so that every posterior gets the same number.
    mantissa, exponent = np.frexp(low / 2 + high / 2)
    fixed[still] = np.ldexp(np.round(mantissa * 2**20) / 2**20, exponent)[still]
    fixed[_cancelled(draws, apart, size, np.maximum(eps, np.finfo(np.float64).eps))] = 0.0
    steady = None if np.isnan(fixed).all() else fixed
    if not bad.any():
        return replace(draws, source=Columns(variables, None, steady, circles))
    never = bad == draws.num_chains * draws.num_draws
    kept = np.flatnonzero(~never)
    angles = {k: circles[entry] for k, entry in enumerate(kept.tolist()) if entry in circles}
    return Draws(
        tuple(names[i] for i in kept),
        Columns(variables, kept, None if steady is None else steady[kept], angles),
        undefined=tuple(names[i] for i in np.flatnonzero(never)),
        broken={names[i]: int(bad[i]) for i in np.flatnonzero((bad > 0) & ~never)},
    )


def _cancelled(draws: Draws, apart: PerEntry, size: PerEntry, eps: PerEntry) -> list[int]:
    """Find entries that are zero up to rounding errors of other entries, such as a sum of offsets.

    Their values recur, whereas those of a small parameter do not.
    """
    sizes = np.unique(size[np.isfinite(size) & (size > 0)])
    found = []
    tiny = (apart > 0) & (size <= ROUNDING * eps * sizes.max(initial=0.0))
    for place in np.flatnonzero(tiny).tolist():
        of_terms = eps[place] * sizes
        if ((of_terms / 64 <= size[place]) & (size[place] <= ROUNDING * of_terms)).any():
            distinct, moves = distinct_and_moves(draws.read(slice(place, place + 1)))
            found += [place] if distinct[0] < RECUR * moves[0] else []
    return found


def refuse_broken(draws: Draws, argument: str = "posterior") -> Draws:
    """Return the draws if all are finite; reject other draws and a posterior without a finite parameter."""
    each = draws.num_chains * draws.num_draws
    bad = dict(draws.broken) or (dict.fromkeys(draws.undefined, each) if not draws.names else {})
    if not bad:
        return draws
    worst = [f"`{name}` ({count})" for name, count in bad.items()]
    listed = ", ".join(worst[:4]) + (", ..." if len(worst) > 4 else "")
    raise ArgumentError(
        f"`{argument}` has {sum(bad.values())} draw(s) that are not finite (number per variable: {listed}). "
        "Diagnostics are not defined for such draws. Find out why the model produces such draws, or omit these "
        "variables."
    )


def entry_names(variable: xr.DataArray) -> Iterator[str]:
    """Name the scalar entries of a variable in C order, such as `W1[0,1]`; use positions if labels repeat."""
    dims = [dim for dim in variable.dims if dim not in SAMPLE_DIMS]
    labels = []
    for dim in dims:
        known = list(map(str, variable.coords[dim].values)) if dim in variable.coords else []
        labels.append(
            known if len(set(known)) == variable.sizes[dim] else range(variable.sizes[dim])
        )
    for index in product(*labels):
        yield f"{variable.name}[{','.join(map(str, index))}]" if dims else str(variable.name)


def _event(variable: xr.DataArray | xr.Variable) -> tuple[int, ...]:
    return tuple(size for dim, size in variable.sizes.items() if dim not in SAMPLE_DIMS)


def with_numbers(dataset: xr.Dataset) -> xr.Dataset:
    """Drop variables without entries; convert Python numbers and half precision to NumPy floats."""
    empty = [name for name in dataset.data_vars if 0 in _event(dataset.variables[name])]
    floats = {}
    for name, variable in ((name, dataset.variables[name]) for name in dataset.data_vars):
        if variable.dtype == object:
            with suppress(TypeError, ValueError):
                floats[name] = variable.astype(np.float64)
        elif variable.dtype == np.float16:  # Sums overflow in half precision.
            floats[name] = variable.astype(np.float32)
    return dataset.assign(floats).drop_vars(empty) if empty or floats else dataset


def checked(variable: xr.DataArray, argument: str) -> xr.DataArray:
    """Return a variable with the axes chain and draw first; reject one that lacks them or is not numeric."""
    check_dims(variable, argument)
    if variable.dtype.kind not in "biuf":
        raise ArgumentError(
            f"The variable `{variable.name}` of `{argument}` has type {variable.dtype}, but only real numbers can be "
            "used. Omit this variable."
        )
    return variable.transpose(*SAMPLE_DIMS, ...)


def check_dims(variable: xr.DataArray, argument: str) -> None:
    """Reject a variable without the dimensions chain and draw."""
    missing = [dim for dim in SAMPLE_DIMS if dim not in variable.dims]
    if missing:
        dims = ", ".join(map(str, variable.dims))
        raise ArgumentError(
            f"The variable `{variable.name}` of `{argument}` has dimensions ({dims}), but every variable needs the "
            f"dimensions (chain, draw, ...). Add the missing dimension(s): {', '.join(missing)}."
        )


_INDEX = re.compile(r"\[[^\[\]]*\]$")


def variable_of(entry: object, known: Container[str] = ()) -> str:
    """Return the variable to which a scalar parameter such as `W1[0,1]` belongs; names in `known` may have brackets."""
    name = str(entry)
    return name if name in known else _INDEX.sub("", name)


def event_shapes(
    dataset: xr.Dataset, names: Iterable[str] | None = None
) -> dict[str, tuple[int, ...]]:
    """Return the shape of one draw of each variable; with `names`, only of those that exist."""
    wanted = [str(name) for name in dataset] if names is None else names
    return {name: _event(dataset.variables[name]) for name in wanted if name in dataset.variables}


def choose_variables(
    there: tuple[str, ...], var_names: str | Sequence[str] | None
) -> Sequence[str]:
    """Return the requested variables, or all if `var_names` is None; reject unknown names."""
    if var_names is None:
        return there
    chosen = [var_names] if isinstance(var_names, str) else list(dict.fromkeys(var_names))
    unknown = [name for name in chosen if name not in there]
    if unknown or not chosen:
        got = ", ".join(f"`{name}`" for name in unknown) or "no names"
        raise ArgumentError(
            f"`var_names` must name variables of the posterior; got {got}. Choose from {', '.join(there)}."
        )
    return chosen
