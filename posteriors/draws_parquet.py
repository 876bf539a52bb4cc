"""Draws as a table in Parquet (`onebasin[parquet]`), with the columns of `draws_csv` and the numbers' own types.

A wide table has a row a draw and a column a scalar. A long one, which is read alone, has a row a number: columns of
chains, draws, names (`variable`, `parameter`, `name`) and `value`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.errors import FormatError, PosteriorFileError
from onebasin.base.extras import lacks

from .csv_blocks import rows_at_once
from .draws_csv import named_columns, row_block
from .stan_csv import CHAIN_COLUMNS, ORDER_COLUMNS, ChainFile

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

MAGIC = b"PAR1"
_NAMES = ("variable", ".variable", "parameter", "name")
_VALUES = ("value", ".value")
_INDEX = "__index_level_"
"""Columns in which pandas keeps the numbers of rows."""


@dataclass(frozen=True)
class ParquetTable(ChainFile):
    """A Parquet file, read some rows at a time; `long` has the numbers (row, column) of a long table, as a wide one."""

    long: np.ndarray | None = None

    @classmethod
    def of(cls, path: Path) -> ParquetTable:
        """Open a file and read the names of its columns; of a long table, the numbers too."""
        file = _opened(path)
        names = [name for name in file.schema_arrow.names if not name.startswith(_INDEX)]
        rows, long = file.metadata.num_rows, None
        if any(name in names for name in _NAMES) and any(name in names for name in _VALUES):
            names, long = _widened(file, names, path)
            rows = len(long)
        else:
            for name in names:
                _check_numbers(file.schema_arrow.field(name), path)
        return cls(path, tuple(names), rows, long=long)

    def tables(self) -> Iterator[np.ndarray]:
        """Read the rows, some at a time; what is missing is NaN."""
        if self.long is not None:
            yield self.long
            return
        names = list(self.columns)
        with _opened(self.path) as file:
            for batch in file.iter_batches(rows_at_once(len(names)), columns=names):
                columns = [batch.column(name).cast("float64") for name in names]
                yield np.stack([c.to_numpy(zero_copy_only=False) for c in columns], axis=1)


def _arrow() -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise PosteriorFileError(lacks("A Parquet file", "parquet")) from error
    return pq


def _opened(path: Path) -> Any:
    try:
        return _arrow().ParquetFile(path)
    except (OSError, ValueError) as error:  # pyarrow's own are of the second class
        raise FormatError(
            path, "is no Parquet file that can be read: it is cut short or damaged"
        ) from error


def _check_numbers(field: pa.Field, path: Path) -> None:
    import pyarrow as pa

    if not (pa.types.is_boolean(field.type) or pa.types.is_floating(field.type)) and not (
        pa.types.is_integer(field.type) or pa.types.is_null(field.type)
    ):
        raise FormatError(
            path, f"has a column {field.name} of type {field.type}, which holds no numbers: drop it"
        )


def _widened(file: Any, names: list[str], path: Path) -> tuple[list[str], np.ndarray]:
    """Give a long table a row a draw, in the order of chains and draws; it needs every name once in every draw."""
    name, value = (next(n for n in known if n in names) for known in (_NAMES, _VALUES))
    counting = [
        next((n for n in known if n in names), None) for known in (CHAIN_COLUMNS, ORDER_COLUMNS)
    ]
    if None in counting:
        raise FormatError(path, "is a long table without columns `chain` and `draw`: add them")
    for column in (*counting, value):
        _check_numbers(file.schema_arrow.field(column), path)
    table = file.read(columns=[*counting, name, value]).to_pandas()
    table[name] = table[name].astype(str)
    kinds, twice = list(table[name].unique()), table.duplicated([*counting, name]).any()
    wide = table.iloc[:0] if twice else table.pivot(index=counting, columns=name, values=value)
    if not kinds or wide.size != len(table):
        raise FormatError(path, "lacks some variable in some draw, or has it twice: write one each")
    return ["chain", "draw", *kinds], wide[kinds].reset_index().to_numpy(np.float64)


def write(tree: xr.DataTree, path: Path) -> None:
    """Write the draws and statistics of a posterior as a wide table, a chain a row group; see `writing.write_tree`."""
    pq = _arrow()
    import pyarrow as pa

    names, arrays = named_columns(tree, path)
    chains, draws = arrays[-1].shape[:2]
    writer = None
    try:
        for chain in range(chains):
            blocks = row_block(arrays, chain, slice(0, draws))
            columns = [pa.array(column) for block in blocks for column in block.T]
            table = pa.Table.from_arrays(columns, names=names)
            writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
