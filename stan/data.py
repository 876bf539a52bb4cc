"""A Stan program's data: read from JSON, and refused where Stan has no message for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.jsonable import read_json_file

from .home.errors import StanDataError


def read_data(path: Path) -> dict[str, Any]:
    """Read a JSON file of variables; refuse what is none, and a variable that is given twice."""
    return read_json_file(path, error=StanDataError)


def check_finite(values: Mapping[str, Any]) -> None:
    """Reject numbers that are not finite, and rows of unequal length; the message says where."""
    for name, value in values.items():
        array = _array(name, value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise StanDataError(
                f"`data` has a value that is not finite in {name}{list(where)}: {array[where]}; "
                "remove or impute it first."
            )


def check_numbers(values: Mapping[str, Any]) -> None:
    """Reject what is no number or no array of them; a mapping is a tuple of Stan's."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            continue
        array = _array(name, value)
        if array.dtype.kind in "biuf":
            continue
        for entry in array.ravel():
            if isinstance(entry, (list, tuple)):
                raise _ragged(name)
            # A complex number is a pair of real ones to Stan; whole numbers beyond 64 bits are left to it.
            if not isinstance(entry, (int, float, complex, Mapping)):
                held = "null" if entry is None else repr(str(entry))
                raise StanDataError(
                    f"`data` holds {held} in {name}, which is no number; remove or replace it first."
                )


def lacking(absent: str, program: str, given: Mapping[str, Any]) -> StanDataError:
    """Say which declared variables the data lack."""
    if not given:
        return StanDataError(
            f"`data` is missing or empty: {program} declares {absent}; give a JSON file with an entry for each."
        )
    return StanDataError(
        f"`data` lacks {absent}, which {program} declares; it holds {', '.join(given)}."
    )


def _array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, Mapping):
        return np.zeros(0)
    try:
        return np.asarray(value)
    except ValueError:  # NumPy's own words are of its own arrays
        raise _ragged(name) from None


def _ragged(name: str) -> StanDataError:
    return StanDataError(
        f"`data` has rows of different lengths in {name}, or lists within lists too deep for an array; "
        "give every row of an array one length."
    )
