"""posteriordb's draws: JSON, zipped or plain, a list with an object for each chain, of names and their draws.

Names are those of scalars, `theta[1]`; arrays (draw, ...) are read too, as is a single object, which is one chain. It
holds draws alone: no statistics, names of axes, attributes or other groups.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.files.claims import ClaimError, check_claim
from onebasin.base.files.faults import FormatError
from onebasin.base.files.zips import member_of
from onebasin.base.jsonable import parse_json

from . import schema
from .draws_csv import real_draws
from .entries import bracketed, gather
from .storable import check_values

if TYPE_CHECKING:
    import xarray as xr

_GROWTH = 5
"""How much larger than its text a parsed number is, about."""


def read(path: Path) -> xr.DataTree:
    """Read posteriordb's draws, into memory.

    Raises
    ------
    FormatError
        If the file holds no such draws, claims too much, or its chains differ in names or lengths.
    """
    import xarray as xr
    from arviz_base import dict_to_dataset

    chains = _chains_of(path, _parse(path))
    names = list(chains[0])
    for number, chain in enumerate(chains):
        if set(chain) != set(names):
            odd = next(iter(set(chain) ^ set(names)))
            raise FormatError(
                path, f"has {odd!r} in one chain and not in another: take another copy"
            )
        _check_lengths(path, chain, number)
    sizes = [len(chain[names[0]]) for chain in chains]
    if len(set(sizes)) > 1:
        short, long = int(np.argmin(sizes)), int(np.argmax(sizes))
        raise FormatError(
            path,
            f"has {sizes[short]} draws in chain {short + 1} and {sizes[long]} in chain {long + 1}, but chains of one "
            "posterior have equally many: leave the odd one out",
        )
    if not sizes[0]:
        raise FormatError(path, "holds no draws: its chains are empty")
    draws = _draws(path, chains, names)
    try:
        check_values(draws_of_one(draws), dims={}, argument=str(path))
    except ValueError as error:
        raise FormatError.whole(str(error)) from None
    return xr.DataTree.from_dict({schema.POSTERIOR: dict_to_dataset(draws)})


def draws_of_one(draws: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The first draw of the first chain."""
    return {name: values[0, 0] for name, values in draws.items()}


def _parse(path: Path) -> Any:
    try:
        if not zipfile.is_zipfile(path):
            check_claim(path, _GROWTH * path.stat().st_size)
            return parse_json(path.read_text(encoding="utf-8"))
        with zipfile.ZipFile(path) as archive:
            member = member_of(archive, path, ".json")
            check_claim(path, _GROWTH * member.file_size)
            return parse_json(archive.read(member).decode("utf-8"))
    except ClaimError as error:
        raise FormatError(path, str(error)) from None
    except (FormatError, OSError):
        raise
    except Exception as error:  # of bytes that anyone may have written, zipfile raises anything
        raise FormatError(
            path, "is no JSON that can be read: it is cut short, damaged or of another kind"
        ) from error


def _chains_of(path: Path, said: Any) -> Sequence[Mapping[str, Any]]:
    chains = [said] if isinstance(said, dict) else said
    good = (
        isinstance(chains, list)
        and chains
        and all(isinstance(chain, dict) and chain for chain in chains)
        and all(isinstance(draws, list) for chain in chains for draws in chain.values())
    )
    if not good:
        raise FormatError(
            path,
            "holds JSON, but not the draws of a posterior: a list with an object {name: draws} for each chain",
        )
    return chains


def _check_lengths(path: Path, chain: Mapping[str, list[Any]], number: int) -> None:
    lengths = {name: len(draws) for name, draws in chain.items()}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise FormatError(
            path,
            f"has {lengths[short]} draws of {short!r} and {lengths[long]} of {long!r} in chain {number + 1}: every "
            "variable needs equally many",
        )


def _draws(
    path: Path, chains: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, np.ndarray]:
    arrays = {name: _array(path, name, [chain[name] for chain in chains]) for name in names}
    scalars = [name for name in names if arrays[name].ndim == 2]
    out = {}
    for name, entries in gather(scalars).items():
        held = np.stack([arrays[scalars[place]] for place in entries.columns], axis=-1)
        out[name] = held.reshape(*held.shape[:2], *entries.shape)
    return out | {name: array for name, array in arrays.items() if array.ndim > 2}


def _array(path: Path, name: str, chains: list[Any]) -> np.ndarray:
    try:
        array = np.array(chains, dtype=object if _has_null(chains) else None)
        array = array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError) as error:
        raise FormatError(path, f"has draws of {name!r} that are no array of numbers") from error
    if array.dtype.kind not in "biuf":
        raise FormatError(path, f"has draws of {name!r} that are no numbers")
    return array.astype(np.float64) if array.dtype.kind == "u" else array


def _has_null(value: Any) -> bool:
    """Whether a draw is missing: NaN, where JSON has a word for it, is read as it is."""
    if isinstance(value, list):
        return any(map(_has_null, value))
    return value is None


def write(tree: xr.DataTree, path: Path) -> None:
    """Write the draws of a posterior as plain JSON; see `writing.write_tree`."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_text(tree))


def write_zipped(tree: xr.DataTree, path: Path, name: str) -> None:
    """Write the draws of a posterior as zipped JSON, whose one member has this name."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        member.writelines(text.encode() for text in _text(tree))


def _text(tree: xr.DataTree) -> Iterator[str]:
    """The JSON, an entry's draws at a time."""
    draws = real_draws(tree, schema.POSTERIOR)
    chains = next(iter(draws.values())).shape[0]
    for chain in range(chains):
        yield "[{" if chain == 0 else ",\n{"
        first = True
        for name, values in draws.items():
            held = values[chain].values
            columns = held.reshape(len(held), -1).T
            for entry, column in zip(bracketed(name, values.shape[2:]), columns, strict=True):
                yield (
                    ("" if first else ",\n") + json.dumps(entry) + ":" + json.dumps(column.tolist())
                )
                first = False
        yield "}"
    yield "]\n"
