"""Checks of what a user hands in: words, numbers, sizes and data, each with one clear error.

Nothing is clipped, dropped or filled in: a value that does not fit is refused.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np

from .errors import MAX_SEED, ArgumentError, ArgumentTypeError


def choose(argument: str, value: str, allowed: Iterable[str]) -> str:
    """Return a word if it is among `allowed`; the error lists what is and names the nearest."""
    names = list(allowed)
    if not isinstance(value, str):
        raise ArgumentTypeError(
            f"`{argument}` must be text, one of {', '.join(names)}; got {value!r}."
        )
    if value in names:
        return value
    near = difflib.get_close_matches(value, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ArgumentError(f"`{argument}` is {value!r}; choose one of {', '.join(names)}.{hint}")


def check_class(argument: str, value: object, kind: type | UnionType, *, remedy: str) -> None:
    """Refuse what is not of a class; `remedy` says how to have what is needed."""
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"`{argument}` is of class {type(value).__name__}; {remedy}.")


def check_path(argument: str, value: Any) -> Path:
    """Return a path; refuse what is neither text nor a path, and what no file can be named."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"`{argument}` must be a path, as text or a `Path`; got {value!r}.")
    text = os.fsdecode(value)
    if not text or "\0" in text:
        raise ArgumentError(f"`{argument}` is {text!r}, which names no file; give a path.")
    return Path(text)


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def check_paths(argument: str, value: Any) -> list[Path]:
    """Return the paths that an argument gives, one or several; refuse what names no file, as `check_path` does."""
    several = isinstance(value, list | tuple)
    if several and not value:
        raise ArgumentError(f"`{argument}` is empty; give a path, or the paths of a run's chains.")
    return [check_path(argument, path) for path in (value if several else [value])]


def check_positive(argument: str, value: object) -> None:
    """Refuse anything but a positive finite number."""
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type, operator]
        raise ArgumentError(f"`{argument}` must be a positive finite number; got {value!r}.")


def check_not_negative(argument: str, value: object) -> None:
    """Refuse anything but a finite number that is 0 or more."""
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
        raise ArgumentError(f"`{argument}` must be a finite number, 0 or more; got {value!r}.")


MOST = 10**9
"""No count is larger: neither loops of so many steps nor arrays of so many rows come to an end."""


def check_count(argument: str, value: object, *, least: int = 1, most: int = MOST) -> None:
    """Refuse anything but a whole number from `least` to `most`."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise ArgumentError(
            f"`{argument}` must be a whole number, at least {least}; got {value!r}."
        )
    if value > most:  # type: ignore[operator]
        raise ArgumentError(f"`{argument}` must be at most {most:,}; got {value!r}.")


def check_seed(seed: Any, argument: str = "seed") -> int:
    """Return a seed as an `int`; refuse one that an engine cannot take."""
    whole = isinstance(seed, Integral) and not isinstance(seed, bool)
    if not whole or not 0 <= seed <= MAX_SEED:
        raise ArgumentError(
            f"`{argument}` must be a whole number from 0 to {MAX_SEED}; got {seed!r}."
        )
    return int(seed)


def check_inputs(x: Any, in_dim: int) -> np.ndarray:
    """Return a copy of inputs as float64 (obs, in), or raise a clear error."""
    x = as_numbers("x", x)
    if x.ndim != 2 or x.shape[1] != in_dim:
        raise ArgumentError(
            f"`x` has shape {x.shape}, but the network has {in_dim} inputs: give (obs, {in_dim})."
        )
    if not len(x):
        raise ArgumentError("`x` has no rows; give at least one observation.")
    _check_finite("x", x)
    return x


def check_outputs(y: Any, num_obs: int, out_dim: int) -> np.ndarray:
    """Return a copy of regression targets as float64 (obs, out), or raise a clear error."""
    y = as_numbers("y", y)
    given = y.shape
    y = y[:, None] if y.ndim == 1 else y
    if y.shape != (num_obs, out_dim):
        raise ArgumentError(
            f"`y` has shape {given}, but {num_obs} rows of `x` and {out_dim} output(s) need "
            f"({num_obs}, {out_dim})."
        )
    _check_finite("y", y)
    return y


def check_labels(y: Any, num_obs: int, num_classes: int) -> np.ndarray:
    """Return a copy of class labels as int64 (obs,), or raise a clear error."""
    y = as_numbers("y", y)
    if y.shape != (num_obs,):
        raise ArgumentError(f"`y` has shape {y.shape}; {num_obs} labels need ({num_obs},).")
    _check_finite("y", y[:, None])
    if (y != np.floor(y)).any() or y.min() < 0 or y.max() >= num_classes:
        raise ArgumentError(
            f"`y` must hold labels 0 to {num_classes - 1} (one output a class); got values from "
            f"{y.min():g} to {y.max():g}."
        )
    return y.astype(np.int64)


def as_numbers(argument: str, value: Any) -> np.ndarray:
    """Return a copy as float64, so that what the caller does to the array later changes nothing.

    Refused is what is no array of real numbers, and a masked array, whose mask would be lost.
    """
    if np.ma.is_masked(value):
        raise ArgumentError(f"`{argument}` has masked entries; fill them, or leave their rows out.")
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            raise ArgumentTypeError("complex numbers")
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            kind = f"an array of {'complex numbers' if value.dtype.kind == 'c' else value.dtype}"
        raise ArgumentError(
            f"`{argument}` must be an array of real numbers, all rows of one length; got {kind}."
        ) from error


def _check_finite(argument: str, value: np.ndarray) -> None:
    bad = np.argwhere(~np.isfinite(value))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        raise ArgumentError(
            f"`{argument}` has {len(bad)} value(s) that are not finite, the first in row {row}, "
            f"column {column} ({value[row, column]}); remove or impute them first."
        )
