"""Check names and shapes that a posterior can store, and gather scalar columns (`theta.1.2`, `theta[1,2]`) in arrays.

A posterior file is NetCDF with the axes `chain` and `draw`. A variable with the name of an axis would be lost in it. A
tuple, or a name with a slash, would make a run fail after its last draw. In arrays of other packages, slashes become
dots, and masked or missing draws become NaN.

Positions count from 1, as in Stan, or from 0 if an index in brackets is 0. Columns may be in any order. Each part of a
tuple is a separate variable (`t:1`), and an array of tuples becomes one array per part. `z.real` and `z.imag` of a
complex variable are two variables. Columns with gaps between positions (only `theta[2]`, say) remain separate scalars.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from math import prod
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.errors import ArgumentError, ArgumentTypeError
from onebasin.base.machine import in_words, memory
from onebasin.base.text import dotted

from .schema import SAMPLE_DIMS

if TYPE_CHECKING:
    import xarray as xr

Index = tuple[int, ...]

_BRACKETS = re.compile(r"(?P<base>.*[^\]])\[(?P<index>\d+(?:\s*,\s*\d+)*)\]", re.DOTALL)
_TUPLE = re.compile(r"""\(['"](?P<base>[^'"]+)['"],\s*(?P<index>\d+(?:\s*,\s*\d+)*)\)""")
"""Name of a column in ArviZ's pandas tables: `('mu', 0)`."""
_DOTS = re.compile(r"(?P<base>.*?[^.\d].*?)(?P<index>(?:\.\d+)+)", re.DOTALL)


@dataclass(frozen=True)
class Entries:
    """The shape of a variable and the columns with its entries."""

    shape: Index  # The shape of one draw.
    columns: np.ndarray  # The positions of its entries among all columns, in C order.

    def take(self, table: np.ndarray) -> np.ndarray:
        """Extract the draws (draw, ...) of the variable from a table (draw, column)."""
        return table[:, self.columns].reshape(len(table), *self.shape)


def gather(names: Sequence[str]) -> dict[str, Entries]:
    """Group columns by variable, in the order of each variable's first column."""
    groups: dict[str, dict[Index, int]] = {}
    for place, name in enumerate(names):
        base, index = split(name)
        groups.setdefault(base, {}).setdefault(index, place)
    out: dict[str, Entries] = {}
    for base, places in groups.items():
        bracketed = all(names[place].endswith(("]", ")")) for place in places.values())
        first = 0 if bracketed and any(0 in index for index in places) else 1
        shape: Index | None = None  # None if the positions leave gaps.
        depths = {len(index) for index in places}
        if len(depths) == 1:
            axes = range(depths.pop())
            shape = tuple(max(index[axis] for index in places) + 1 - first for axis in axes)
            inside = all(min(index, default=1) >= first for index in places)
            shape = shape if inside and prod(shape) == len(places) else None
        if shape is None:
            for place in places.values():
                out[names[place]] = Entries((), np.array([place]))
        else:
            indices = product(*(range(first, first + size) for size in shape))
            out[base] = Entries(shape, np.array([places[index] for index in indices], int))
    return out


def split(name: str) -> tuple[str, Index]:
    """Split the name of a column into a variable name and a position.

    >>> split("theta.1.2"), split("theta[1,2]"), split("t.3:1.2"), split("lp__")
    (('theta', (1, 2)), ('theta', (1, 2)), ('t:1', (3, 2)), ('lp__', ()))
    """
    if found := _BRACKETS.fullmatch(name) or _TUPLE.fullmatch(name):
        return found["base"], tuple(map(int, found["index"].split(",")))
    head, *parts = name.split(":")
    found = _DOTS.fullmatch(head)
    base = found["base"] if found else head
    index = tuple(map(int, found["index"].split(".")[1:])) if found else ()
    for part in parts:
        number, *places = part.split(".")
        if not number.isdigit() or not all(place.isdigit() for place in places):
            return name, ()
        base, index = f"{base}:{number}", (*index, *map(int, places))
    return base, index


def entry_names(name: str, shape: Index) -> Iterator[str]:
    """Name the entries of a variable in C order, as in CmdStan's CSV files."""
    for index in np.ndindex(*shape):
        yield ".".join([name, *(str(place + 1) for place in index)])


Dims = Mapping[str, tuple[str, ...]]


def check_names(names: Iterable[Any], *, dims: Dims, argument: str) -> None:
    """Reject variables whose name is reserved, cannot be stored, or is the name of an axis.

    `dims` maps variables to the names of their axes. Messages call the model `argument`.
    """
    names = list(names)
    for name in names:
        said = f"`{argument}` has a variable named"
        if name in SAMPLE_DIMS:
            raise ArgumentError(
                f"{said} {name!r}, which is the name of an axis in every posterior: rename the variable. The names "
                f"{' and '.join(SAMPLE_DIMS)} are reserved."
            )
        if not _can_be_written(name):
            raise ArgumentError(
                f"{said} {name!r}, which no file can store. Give the variable a name that has no slash and does not "
                "consist only of dots."
            )
    for name, axis in ((own, axis) for own in names for axis in dims.get(own, ())):
        said = f"`dims` gives an axis of {name} the name {axis!r}"
        twice = tuple(dims[name]).count(axis) > 1
        if axis in SAMPLE_DIMS or twice or not _can_be_written(axis):
            raise ArgumentError(
                f"{said}, which is not allowed. Give each axis of a variable a different name, without a slash and "
                f"other than {' or '.join(SAMPLE_DIMS)}."
            )
        if axis in names:
            raise ArgumentError(f"{said}, which is also the name of a variable: rename the axis.")


def check_values(
    values: Mapping[str, Any], *, dims: Dims, argument: str, coords: Mapping[str, Any] | None = None
) -> None:
    """Reject variables that a posterior cannot store, because of their names (see `check_names`) or types.

    `values` has one value per variable. Also reject axis names `dims` and labels `coords` that do not fit the shapes.
    """
    check_names(values, dims=dims, argument=argument)
    unknown = [name for name in dims if name not in values]
    if unknown:
        raise ArgumentError(
            f"`dims` names axes of {unknown[0]}, but the model has only the variable(s) {', '.join(values)}. Correct "
            "the name in `dims`."
        )
    sizes: dict[str, tuple[int, str]] = {}
    for name, value in values.items():
        try:
            numeric = isinstance(value, Number) or np.dtype(value.dtype).kind in "biufc"
        except (AttributeError, TypeError):
            numeric = False
        if not numeric:
            raise ArgumentTypeError(
                f"The variable {name} of `{argument}` must be one array of numbers; got {type(value).__name__}. "
                "Store each part as a variable with its own name."
            )
        shape = np.shape(value)
        if name in dims and len(dims[name]) != len(shape):
            raise ArgumentError(
                f"`dims` has {len(dims[name])} name(s) for the axes of {name}, whose shape is {shape}. Give one name "
                "per axis."
            )
        axes = dims.get(name) or tuple(f"{name}_dim_{place}" for place in range(len(shape)))
        for axis, size in zip(axes, shape, strict=True):
            known, other = sizes.setdefault(axis, (size, name))
            if known != size:
                raise ArgumentError(
                    f"`dims` gives axes of {other} and {name} the same name, {axis}, but their sizes are {known} and "
                    f"{size}. Give these axes different names."
                )
            if axis in values:
                raise ArgumentError(
                    f"`{argument}` has a variable {axis}, and an axis of {name} has the same name. Rename one of "
                    "them."
                )
    for axis, labels in (coords or {}).items():
        size, name = sizes.get(axis, (len(labels), ""))
        if size != len(labels):
            raise ArgumentError(
                f"`coords` has {len(labels)} label(s) for the axis {axis} of {name}, but this axis has length "
                f"{size}. Give one label per position."
            )


def axes_of(name: str, count: int, taken: Container[str]) -> tuple[str, ...]:
    """Name the axes of a variable as ArviZ does, `NAME_dim_0`; append `_` if a variable has that name."""
    axes = []
    for place in range(count):
        axis = f"{name}_dim_{place}"
        while axis in taken:
            axis += "_"
        axes.append(axis)
    return tuple(axes)


def check_amount(chains: int, draws: int, *, numbers: int = 0, kept: bool = False) -> None:
    """Reject more draws than fit into memory; each has eight statistics and `numbers` values.

    If draws are `kept` on disk, only one draw's values per chain are in memory.
    """
    least = 8 * chains * (8 * draws + numbers * (1 if kept else draws))
    if least > (most := memory()):
        of = f" of {numbers:,} values per draw" if numbers else ""
        raise ArgumentError(
            f"{chains} chain(s) of {draws} draws need at least {in_words(least)} of memory{of}, but this machine has "
            f"only {in_words(most)}. Use fewer `draws`."
        )


def _can_be_written(name: Any) -> bool:
    if not isinstance(name, str) or not name.strip(".") or "/" in name or "\0" in name:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def dataset_of(
    arrays: Mapping[Any, Any], argument: str, *, lead: tuple[str, ...] = SAMPLE_DIMS
) -> xr.Dataset:
    """Make a group from arrays or nested lists, whose first axes are `lead`.

    Reject names that cannot be stored, values that are not numeric arrays, missing axes, and unequal sizes.
    """
    import xarray as xr

    arrays = {n: array_of(n, v, argument) for n, v in storable_names(arrays, argument).items()}
    held: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    sizes: dict[str, int] = {}
    for name, values in arrays.items():
        if values.ndim < len(lead):
            raise ArgumentError(
                f"`{name}` in `{argument}` must have the axes (chain, draw, ...); got the shape {values.shape}. In "
                "NumPyro, use `get_samples(group_by_chain=True)`. For a single chain, pass `values[None]`."
            )
        known = tuple(sizes.setdefault(*axis) for axis in zip(lead, values.shape, strict=False))
        if known != values.shape[: len(lead)]:
            raise ArgumentError(
                f"`{name}` in `{argument}` has {' chain(s) of '.join(map(str, values.shape[:2]))} draw(s), but other "
                f"variables have {' chain(s) of '.join(map(str, known))} draw(s). Give all variables the same "
                "numbers of chains and draws."
            )
        held[name] = ((*lead, *axes_of(name, values.ndim - len(lead), arrays)), values)
    dataset = xr.Dataset(held)
    return dataset.assign_coords({dim: np.arange(size) for dim, size in dataset.sizes.items()})


def storable_names[T](held: Mapping[Any, T], argument: str) -> dict[str, T]:
    """Convert names to names that files can store; reject invalid names and names that become equal."""
    names = [dotted(name) for name in held]
    check_names(names, dims={}, argument=argument)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(
            f"Two variables of `{argument}` would both be stored as {twice}, because onebasin replaces slashes with "
            "dots. Rename one of them."
        )
    return dict(zip(names, held.values(), strict=True))


def gathered(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Join scalars (chain, draw) such as `theta[1]` into arrays."""
    scalars = [name for name, values in columns.items() if values.ndim == 2]
    out = {}
    for name, entries in gather(scalars).items():
        parts = [columns[scalars[place]] for place in entries.columns]
        if len({part.shape for part in parts}) > 1:
            return dict(columns)  # A later message names them.
        out[name] = np.stack(parts, axis=-1).reshape(*parts[0].shape, *entries.shape)
    return out | {name: values for name, values in columns.items() if values.ndim != 2}


def array_of(name: str, value: Any, argument: str) -> np.ndarray:
    """Convert a variable to one array of numbers; reject ragged or non-numeric values."""
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(
            f"The chains or draws of `{name}` in `{argument}` have different shapes. Give one array with the axes "
            "(chain, draw, ...)."
        ) from error
    # Convert Python numbers with missing values, and bfloat16.
    if array.dtype.kind in "OV" or array.dtype == np.uint64:
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"`{name}` in `{argument}` must be numeric; got the type {array.dtype}. Convert the variable, or omit it."
        )
    return array
