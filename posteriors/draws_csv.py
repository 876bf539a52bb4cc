"""One table of all chains as CSV: a row a draw, columns `chain` and `draw` first, then statistics and variables.

Names of columns are CmdStan's: `lp__`, `divergent__`, `theta.1.2`. Tables of R's `posterior` (`.chain`, `.iteration`,
`.draw`) are read too. It holds draws and statistics of real numbers, no names of axes, no attributes, no other group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onebasin.base.errors import FormatError

from . import schema
from .entries import dotted, gather
from .stan_csv import CHAIN_COLUMNS, ORDER_COLUMNS, STATS, ChainFile, collect, layout

if TYPE_CHECKING:
    import xarray as xr

_ROWS = 256
"""Rows that are written at once."""

_COLUMNS = {stat: n for n, stat in reversed(STATS.items()) if n.endswith("__")}


def says(file: ChainFile, columns: tuple[str, ...]) -> bool:
    """Tell whether a table says of every row which chain, or which draw, it is of, in one of these columns."""
    return not file.header.is_stans and any(name in file.columns for name in columns)


def read(file: ChainFile, *, lazy: bool) -> xr.DataTree:
    """Read a table of all chains, or of one that names none."""
    file.check()
    header = file.columns
    columns = layout(file)
    place = next((header.index(name) for name in CHAIN_COLUMNS if name in header), None)
    order = next((header.index(name) for name in ORDER_COLUMNS if name in header), None)
    chains, in_order = _scan(file, place, order)
    tables = _tables(file, place)
    place = -1 if place is None else place
    if order is not None and not in_order:  # all rows at once, in the order of their chains' draws
        whole = np.concatenate(list(tables))
        whole = whole[np.lexsort((whole[:, order], whole[:, place]))]
        same = (np.diff(whole[:, [place, order]], axis=0) == 0).all(axis=1)
        if same.any():
            raise FormatError(
                file.path,
                f"has several draws of the number {whole[same.argmax(), order]:g} in one chain: give each chain a "
                "number of its own in a column `.chain`",
            )
        tables = iter([whole])
    rows = (
        (number, table[table[:, place] == label])
        for table in tables
        for number, label in enumerate(chains)
    )
    return collect(file, columns, (len(chains), next(iter(chains.values()))), rows, {}, lazy=lazy)


def _tables(file: ChainFile, place: int | None) -> Iterator[np.ndarray]:
    """Give the rows, some at a time; where no column has their chain, a last one has zero."""
    for table in file.tables():
        yield table if place is not None else np.pad(table, ((0, 0), (0, 1)))


def _scan(file: ChainFile, place: int | None, order: int | None) -> tuple[dict[float, int], bool]:
    """Count each chain's draws, in the order in which they begin; tell whether all are numbered upwards."""
    sizes: dict[float, int] = {}
    last: dict[float, float] = {}
    in_order = True
    tables, place = _tables(file, place), -1 if place is None else place
    for table in tables:
        if np.isnan(table[:, place]).any():
            raise FormatError(file.path, "does not say of every row which chain it is of")
        for label, count in zip(*np.unique(table[:, place], return_counts=True), strict=True):
            sizes[float(label)] = sizes.get(float(label), 0) + int(count)
            if order is not None and in_order:
                numbers = table[table[:, place] == label, order]
                upwards = (np.diff(numbers) > 0).all()
                in_order = bool(upwards and numbers[0] > last.get(label, -np.inf))
                last[label] = numbers[-1]
    if len(set(sizes.values())) > 1:
        least, most = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
        raise FormatError(
            file.path,
            f"has {sizes[least]} draws of chain {least:g} and {sizes[most]} of chain {most:g}, but chains of one "
            "posterior have equally many: leave the odd one out, or take another copy",
        )
    return sizes, in_order


def write(tree: xr.DataTree, path: Path) -> None:
    """Write the draws and statistics of a posterior as one table; see `writing.write_tree`."""
    names, arrays = named_columns(tree, path)
    quoted = ('"' + n.replace('"', '""') + '"' if set(n) & set(',"') else n for n in names)
    chains, length = arrays[-1].shape[:2]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(",".join(quoted) + "\n")
        for chain in range(chains):
            for first in range(0, length, _ROWS):
                part = slice(first, min(first + _ROWS, length))
                columns: list[list] = []
                for block in row_block(arrays, chain, part):
                    block = block.astype(int) if block.dtype == bool else block
                    columns += block.T.tolist()
                file.writelines(
                    ",".join(map(repr, row)) + "\n" for row in zip(*columns, strict=True)
                )


def named_columns(tree: xr.DataTree, path: Path) -> tuple[list[str], list[xr.DataArray]]:
    """Name the columns of a posterior's table, and give the statistics and variables that follow chain and draw."""
    draws, stats = (real_draws(tree, group) for group in (schema.POSTERIOR, schema.SAMPLE_STATS))
    stats = {name: values for name, values in stats.items() if values.ndim == 2}
    names = ["chain", "draw", *(_COLUMNS.get(name, f"{name}__") for name in stats)]
    names += [entry for name, values in draws.items() for entry in dotted(name, values.shape[2:])]
    apart = len(set(names)) == len(names) and not any(set("\r\n") & set(name) for name in names)
    if not apart or set(gather(names)) != {*names[: 2 + len(stats)], *draws}:
        raise FormatError(path, "cannot hold these names apart in a table: write .nc or .zarr")
    return names, [*stats.values(), *draws.values()]


def row_block(arrays: Iterable[xr.DataArray], chain: int, part: slice) -> Iterator[np.ndarray]:
    """Yield columns (row, column) of some draws of a chain: chain and draw from 1, then every array's entries."""
    numbers = np.arange(part.start, part.stop) + 1
    yield np.stack([np.full(len(numbers), chain + 1), numbers], axis=1)
    for values in arrays:
        yield np.asarray(values[chain, part].values).reshape(len(numbers), -1)


def real_draws(tree: xr.DataTree, group: str) -> dict[str, xr.DataArray]:
    """A group's arrays of real numbers, chain and draw first."""
    if group not in tree.children:
        return {}
    held = tree[group].to_dataset()
    return {
        str(name): array.transpose(*schema.SAMPLE_DIMS, ...)
        for name, array in held.data_vars.items()
        if array.dtype.kind in "biuf" and set(schema.SAMPLE_DIMS) <= set(array.dims)
    }
