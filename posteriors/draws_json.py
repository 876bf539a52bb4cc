"""posteriordb's draws: JSON, zipped or plain, a list with an object for each chain, of names and their draws.

Names are those of scalars, `theta[1]`; arrays (draw, ...) are read too. A single object is one chain, or ArviZ's form
(chain, draw, ...) where all variables have the same two leading axes, and more draws than chains. It holds draws alone:
no statistics, names of axes, attributes or other groups.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import ArgumentError, FormatError
from onebasin.base.files.claims import ClaimError, check_claim
from onebasin.base.jsonable import parse_json
from onebasin.base.notices import notice

from . import schema
from .draws import entry_names
from .draws_csv import real_draws
from .entries import bracketed
from .storable import array_of, dataset_of, gathered

if TYPE_CHECKING:
    import xarray as xr

_GROWTH = 5
"""Approximate size of a parsed number relative to its text."""


def read(path: Path) -> xr.DataTree:
    """Read posteriordb's draws, into memory."""
    import xarray as xr

    said = _parse(path)
    chains: list[dict[str, Any]] = _chains_of(said) if isinstance(said, dict) else said
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
    names = list(chains[0])
    odd = next((n for chain in chains for n in set(chain) ^ set(names)), None)
    if odd is not None:
        raise FormatError(path, f"has {odd!r} in one chain and not in another: take another copy")
    lists = {name: [chain[name] for chain in chains] for name in names}
    try:
        draws = dataset_of(
            gathered({n: array_of(n, v, str(path)) for n, v in lists.items()}), str(path)
        )
    except ArgumentError as error:
        raise FormatError.whole(str(error)) from error
    if not draws.sizes["draw"]:
        raise FormatError(path, "holds no draws: its chains are empty")
    return xr.DataTree.from_dict({schema.POSTERIOR: draws})


def _chains_of(said: dict[str, Any]) -> list[dict[str, Any]]:
    """Divide a single object into its chains."""
    lists = [values if isinstance(values, list) else [] for values in said.values()]
    sizes = {(len(v), len(row) if isinstance(row, list) else 0) for v in lists for row in v or [0]}
    if len(sizes) != 1 or not 1 < (size := sizes.pop())[0] < size[1]:
        return [said]
    notice(
        f"the file is read as {size[0]} chains of {size[1]} draws, since all its arrays begin with these sizes"
    )
    return [{name: values[chain] for name, values in said.items()} for chain in range(size[0])]


def _parse(path: Path) -> Any:
    try:
        if not zipfile.is_zipfile(path):
            check_claim(path, _GROWTH * path.stat().st_size)
            return parse_json(path.read_text(encoding="utf-8"))
        with zipfile.ZipFile(path) as archive:
            # The one member that is JSON; what macOS adds is passed over.
            found = [
                member
                for member in archive.infolist()
                if member.filename.endswith(".json") and not member.filename.startswith("__MACOSX/")
            ]
            if len(found) != 1:
                several = f"holds {len(found)} JSON files, and one is needed"
                what = several if found else "holds no JSON"
                raise FormatError(
                    path, f"{what}: give posteriordb's zipped draws, or a zipped Zarr store"
                )
            check_claim(path, _GROWTH * found[0].file_size)
            return parse_json(archive.read(found[0]).decode("utf-8"))
    except ClaimError as error:
        raise FormatError(path, str(error)) from None
    except (FormatError, OSError):
        raise
    except Exception as error:  # of bytes that anyone may have written, zipfile raises anything
        raise FormatError(
            path, "is no JSON that can be read: it is cut short, damaged or of another kind"
        ) from error


def write(tree: xr.DataTree, path: Path, *, zipped: str = "") -> None:
    """Write the draws of a posterior as JSON, the one member of this name of an archive if `zipped`."""
    with ExitStack() as opened:
        if zipped:
            archive = opened.enter_context(zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED))
            file = opened.enter_context(archive.open(zipped, "w", force_zip64=True))
        else:
            file = opened.enter_context(path.open("wb"))
        file.writelines(text.encode() for text in _text(tree))


def names(draws: xr.Dataset) -> dict[str, str]:
    """Entries of draws (chain, draw, ...), whatever labels their axes have, and what they are called in such a file."""
    return {
        entry: written
        for name, variable in draws.data_vars.items()
        for entry, written in zip(
            entry_names(variable), bracketed(str(name), variable.shape[2:]), strict=True
        )
    }


def _text(tree: xr.DataTree) -> Iterator[str]:
    """The JSON, an entry's draws at a time."""
    draws = real_draws(tree, schema.POSTERIOR)
    chains = next(iter(draws.values())).shape[0]
    for chain in range(chains):
        yield "[{" if chain == 0 else ",\n{"
        before = ""
        for name, values in draws.items():
            columns = values[chain].values.reshape(values.shape[1], -1).T
            for entry, column in zip(bracketed(name, values.shape[2:]), columns, strict=True):
                yield f"{before}{json.dumps(entry)}:{json.dumps(column.tolist())}"
                before = ",\n"
        yield "}"
    yield "]\n"
