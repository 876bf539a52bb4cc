"""Arrays by name as a group of a posterior, with names and shapes that files can store.

Convention: arrays are (chain, draw, ...); an axis after these is called `NAME_dim_0`. A slash in a name, as NumPyro's
scopes write it, becomes a dot. Draws that a masked array hides, and those that are missing, are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .entries import gather
from .schema import SAMPLE_DIMS
from .storable import axes_of, check_names

if TYPE_CHECKING:
    import xarray as xr


def dataset_of(
    arrays: Mapping[Any, Any], argument: str, *, lead: tuple[str, ...] = SAMPLE_DIMS
) -> xr.Dataset:
    """Give arrays, or nested lists, by name as a group, in which all of them begin with the axes of `lead`.

    Raises
    ------
    ValueError
        If a name cannot be stored, a variable is no array of numbers or lacks these axes, or their sizes differ.
    """
    import xarray as xr

    arrays = {n: array_of(n, v, argument) for n, v in storable_names(arrays, argument).items()}
    held: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    sizes: dict[str, int] = {}
    for name, values in arrays.items():
        if values.ndim < len(lead):
            raise ArgumentError(
                f"`{argument}` holds `{name}` of shape {values.shape}, and (chain, draw, ...) is needed: keep chains "
                "apart (`get_samples(group_by_chain=True)` of NumPyro), and give a single one as `values[None]`."
            )
        known = tuple(sizes.setdefault(*axis) for axis in zip(lead, values.shape, strict=False))
        if known != values.shape[: len(lead)]:
            raise ArgumentError(
                f"`{argument}` holds `{name}` with (chain, draw) of {values.shape[:2]}, and others with {known}: every "
                "variable needs equally many chains and draws."
            )
        held[name] = ((*lead, *axes_of(name, values.ndim - len(lead), arrays)), values)
    dataset = xr.Dataset(held)
    return dataset.assign_coords({dim: np.arange(size) for dim, size in dataset.sizes.items()})


def storable_names[T](held: Mapping[Any, T], argument: str) -> dict[str, T]:
    """Give each name as files store it.

    Raises
    ------
    ValueError
        If no file can store a name, or two become one.
    """
    names = [name.replace("/", ".") if isinstance(name, str) else name for name in held]
    check_names(names, dims={}, argument=argument)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(
            f"`{argument}` has two variables that would be called {twice}, as a slash becomes a dot: rename one."
        )
    return dict(zip(names, held.values(), strict=True))


def gathered(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Put scalars (chain, draw) such as `theta[1]` together as the variables that they are entries of."""
    scalars = [name for name, values in columns.items() if values.ndim == 2]
    out = {}
    for name, entries in gather(scalars).items():
        parts = [columns[scalars[place]] for place in entries.columns]
        if len({part.shape for part in parts}) > 1:  # as they are, for a message that names them
            return dict(columns)
        out[name] = np.stack(parts, axis=-1).reshape(*parts[0].shape, *entries.shape)
    return out | {name: values for name, values in columns.items() if values.ndim != 2}


def array_of(name: str, value: Any, argument: str) -> np.ndarray:
    """Give a variable as one array of numbers, whatever it is kept in.

    Raises
    ------
    ValueError
        If it is ragged, or holds no numbers.
    """
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(
            f"`{argument}` holds `{name}`, whose chains or draws differ in shape: give one array (chain, draw, ...)."
        ) from error
    if (
        array.dtype.kind in "OV" or array.dtype == np.uint64
    ):  # of Python's numbers, some missing; of bfloat16
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"`{argument}` holds `{name}` of type {array.dtype}, and only numbers can be worked with: leave it out."
        )
    return array
