"""Tables of draws by pandas: in memory, as CSV and as Parquet (`onebasin[parquet]`).

A table has a row per draw, columns of chains and draws, and a column per scalar. We write the names of columns that
CmdStan uses: `chain`, `draw`, `lp__`, `divergent__`, `theta.1.2`. A table holds draws and statistics of real numbers,
no names of axes, no attributes, no other group.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.errors import ArgumentError, FormatError, PosteriorFileError
from onebasin.base.extras import lacks

from . import schema
from .pareto import is_of_weights
from .stan_csv import CHAIN_COLUMNS, COUNTING, ORDER_COLUMNS, STATS, TYPES, ChainFile, open_table
from .storable import dataset_of, entry_names, gather, gathered, storable_names

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

PARQUET = b"PAR1"
_COLUMNS = {stat: n for n, stat in reversed(STATS.items()) if n.endswith("__")}


def read_csv(file: ChainFile) -> xr.DataTree:
    """Read a CSV table of all chains."""
    import pandas as pd

    try:
        with open_table(file.path) as text:
            frame = pd.read_csv(text, sep=file.delimiter, comment="#", index_col=False)
    except ValueError as error:
        why = str(error).splitlines()[0]
        raise FormatError(file.path, f"cannot be read as a table of numbers: {why}") from error
    return _tree(frame, file.path)


def read_parquet(path: Path) -> xr.DataTree:
    """Read a Parquet table."""
    import pandas as pd

    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise PosteriorFileError(lacks("A Parquet file", "parquet")) from error
    except (OSError, ValueError) as error:  # pyarrow's own are of the second class
        raise FormatError(
            path, "is no Parquet file that can be read: it is truncated or damaged"
        ) from error
    return _tree(frame, path)


def _tree(frame: pd.DataFrame, path: Path) -> xr.DataTree:
    import xarray as xr

    try:
        return xr.DataTree.from_dict(groups_of(frame, str(path)))
    except ArgumentError as error:
        raise FormatError.whole(str(error)) from error


def groups_of(frame: pd.DataFrame, argument: str) -> dict[str, xr.Dataset]:
    """Give a table's columns as groups of arrays (chain, draw, ...); messages call it `argument`.

    Without a column of chains it is a single one.
    """
    frame = _flat(frame)
    frame = frame[[n for n in frame if n.strip() and not n.startswith("Unnamed: ")]]  # row names
    if twice := list(frame.columns[frame.columns.duplicated()]):
        raise ArgumentError(f"`{argument}` has two columns of the name {twice[0]!r}: rename one.")
    counting = {n: _numbers(frame[n], argument) for n in COUNTING if n in frame}
    chain = next((counting[n] for n in CHAIN_COLUMNS if n in counting), np.zeros(len(frame)))
    order = next((counting[n] for n in ORDER_COLUMNS if n in counting), np.arange(len(frame)))
    if not len(frame) or np.isnan(chain).any():
        what = "does not say of every row which chain it is of" if len(frame) else "holds no draws"
        raise ArgumentError(f"`{argument}` {what}.")
    each = np.unique(chain, return_counts=True)[1]
    if len(set(each.tolist())) > 1:
        raise ArgumentError(
            f"`{argument}` has chains of {min(each)} and of {max(each)} draws, and all need equally many."
        )
    rows = np.lexsort([order, chain]).reshape(len(each), -1)
    if (order[rows][:, 1:] == order[rows][:, :-1]).any():
        raise ArgumentError(
            f"`{argument}` has several draws of one number in a chain: give each chain a number of its own in a "
            "column `.chain`, and every entry of a variable a column of its own."
        )
    columns = {n: _numbers(frame[n], argument)[rows] for n in frame if n not in counting}
    stats: dict[str, np.ndarray] = {}
    for n in [n for n in columns if n.endswith("__")]:
        stat = STATS.get(n, n.removesuffix("__"))
        stats[stat] = columns.pop(n).astype(TYPES.get(stat, np.float64))
    if not columns:
        raise ArgumentError(f"`{argument}` holds no variables, only what its sampler did.")
    draws = dataset_of(gathered(storable_names(columns, argument)), argument)
    numbers = {dim: np.arange(n) for dim, n in zip(schema.SAMPLE_DIMS, rows.shape, strict=True)}
    groups = {schema.POSTERIOR: draws.assign_coords(numbers)}
    return groups | ({schema.SAMPLE_STATS: dataset_of(stats, argument)} if stats else {})


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Give levels of an index that numbers chains or draws as columns, and names of several levels as one text."""
    if by_chain := [name for name in frame.columns.names if name in CHAIN_COLUMNS]:
        stacked = frame.stack(by_chain, future_stack=True)  # one column per chain
        frame = stacked.to_frame("x") if stacked.ndim == 1 else stacked
    own = [name for name in frame.index.names if name is not None and name not in frame]
    if {*frame.index.names} & {*COUNTING} or any(map(is_of_weights, own)):
        frame = frame.reset_index(own)
    parts = [[p for p in n if p != ""] if isinstance(n, tuple) else [n] for n in frame.columns]
    grouped = any(each[0] == schema.POSTERIOR and len(each) > 1 for each in parts)
    if grouped:
        parts = [each[1:] if each[0] == schema.POSTERIOR else each for each in parts]
    names = []
    for first, *rest in parts:
        if grouped and first == schema.SAMPLE_STATS and rest:
            names.append(f"{rest[0]}__")
        elif rest and not str(first).endswith("]"):
            names.append(f"{first}[{','.join(map(str, rest))}]")
        else:  # also `theta[a]` of ArviZ, which gives the label once more
            names.append(str(first))
    return frame.set_axis(names, axis="columns")


def _numbers(column: Any, argument: str) -> np.ndarray:
    try:
        return np.asarray(column, np.float64)
    except (TypeError, ValueError):
        import pandas as pd

        row = int(pd.to_numeric(column, errors="coerce").isna().to_numpy().argmax())
        raise ArgumentError(
            f"`{argument}` has a column {column.name!r} that holds {str(column.iloc[row])[:20]!r} in row {row + 1}, "
            "which is no number: leave the column out, or write NA."
        ) from None


def write(tree: xr.DataTree, path: Path, *, parquet: bool) -> None:
    """Write the draws and statistics of a posterior as one wide table; see `writing.write_tree`."""
    frame = _frame(tree, path)
    if not parquet:
        frame = frame.astype({n: np.int64 for n in frame if frame[n].dtype == bool})
        frame = frame.astype({n: np.float64 for n in frame if frame[n].dtype == np.float32})
        frame.to_csv(path, index=False, na_rep="nan", compression=None)
        return
    try:
        frame.to_parquet(path, engine="pyarrow", index=False)
    except ImportError as error:
        raise PosteriorFileError(lacks("A Parquet file", "parquet")) from error


def _frame(tree: xr.DataTree, path: Path) -> pd.DataFrame:
    import pandas as pd

    draws, stats = (real_draws(tree, group) for group in (schema.POSTERIOR, schema.SAMPLE_STATS))
    stats = {name: values for name, values in stats.items() if values.ndim == 2}
    names = ["chain", "draw", *(_COLUMNS.get(name, f"{name}__") for name in stats)]
    names += [
        entry for name, values in draws.items() for entry in entry_names(name, values.shape[2:])
    ]
    apart = len(set(names)) == len(names) and not any(set("\r\n") & set(name) for name in names)
    if not apart or set(gather(names)) != {*names[: 2 + len(stats)], *draws}:
        raise FormatError(path, "cannot hold these names apart in a table: write .nc or .zarr")
    chains, length = next(iter(draws.values())).shape[:2]
    columns = [np.repeat(np.arange(chains) + 1, length), np.tile(np.arange(length) + 1, chains)]
    for values in (*stats.values(), *draws.values()):
        columns += list(values.values.reshape(chains * length, -1).T)
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


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
