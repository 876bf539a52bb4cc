"""Check the data of a Stan program before any library reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.errors import StanDataError
from onebasin.base.text import read_json_file


def read_data(path: Path) -> dict[str, Any]:
    """Read a JSON file of variables; reject other files, and variables that are given twice."""
    return read_json_file(path, error=StanDataError)


def check_finite(values: Mapping[str, Any]) -> None:
    """Reject non-finite numbers and rows of unequal length."""
    for name, value in values.items():
        array = _array(name, value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise StanDataError(
                f"`data` has the non-finite value {array[where]} in {name}{list(where) or ''}. Remove or impute this "
                "value."
            )


def check_numbers(values: Mapping[str, Any]) -> None:
    """Reject values that are neither numbers nor arrays of them; mappings are Stan's tuples."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            continue
        array = _array(name, value)
        if array.dtype.kind in "biuf":
            continue
        for entry in array.ravel():
            if isinstance(entry, (list, tuple)):
                raise _ragged(name)
            # Stan reads a pair of real numbers as a complex one, and checks whole numbers beyond 64 bits itself.
            if not isinstance(entry, (int, float, complex, Mapping)):
                held = "null" if entry is None else repr(str(entry))
                raise StanDataError(
                    f"`data` has an entry in {name} that is not a number: {held}. Remove or replace this entry."
                )


def lacking(absent: str, program: str, given: Mapping[str, Any]) -> StanDataError:
    """Return the error for declared variables that are missing in the data."""
    if not given:
        return StanDataError(
            f"`data` is missing or empty, but {program} declares {absent}: give a JSON file with an entry for each."
        )
    return StanDataError(
        f"`data` lacks {absent}, which {program} declares; `data` has only {', '.join(given)}. Add the missing data."
    )


def _array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, Mapping):
        return np.zeros(0)
    try:
        return np.asarray(value)
    except ValueError:  # NumPy's message does not name the variable.
        raise _ragged(name) from None


def _ragged(name: str) -> StanDataError:
    return StanDataError(
        f"`data` has rows of different lengths in {name}, or lists that are nested too deeply; "
        "give every row of an array one length."
    )
