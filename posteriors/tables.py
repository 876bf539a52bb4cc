"""Read and write tables of draws: CmdStan's CSV files (one per chain), other CSV files, Parquet and pandas.

A table has one row per draw, columns that number chains and draws, and one column per scalar. Commas, semicolons or
tabs separate the fields of a CSV file. A byte order mark is skipped, and gzip is unpacked. NA or an empty field is NaN,
and TRUE is 1. Columns that end in two underscores are statistics, under ArviZ's names. Parquet needs
`onebasin[parquet]`.

The comments (`#`) in CmdStan's files record the settings of the run. Warmup rows are skipped, and so is the first row
of ADVI, which is the mean rather than a draw.

onebasin writes CmdStan's column names: `chain`, `draw`, `lp__`, `divergent__`, `theta.1.2`. A table can store only real
draws and statistics, without axis names, attributes and other groups.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from onebasin.base.errors import ArgumentError, FormatError, PosteriorFileError
from onebasin.base.machine import in_words, lacks, memory

from . import schema
from .pareto import is_of_weights
from .storable import dataset_of, entry_names, gather, gathered, storable_names

if TYPE_CHECKING:
    import xarray as xr

PARQUET = b"PAR1"
GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_HEAD = 1 << 20
"""Number of bytes of rows to compare when looking for two files of the same chain."""

_ENTRY = re.compile(r"(?P<name>\w+) = (?P<value>.*?)(?: \(Default\))?")
_SECONDS = re.compile(r"([\d.e+-]+) seconds \((Warm-up|Sampling)\)")


@dataclass(frozen=True)
class Header:
    """The comments of one CSV file, without the ``#``."""

    comments: tuple[str, ...]

    @cached_property
    def entries(self) -> dict[str, str]:
        """The first value of each name in the comments; empty if Stan did not write the file."""
        found = (_ENTRY.fullmatch(line) for line in reversed(self.comments))
        return {entry["name"]: entry["value"].strip() for entry in found if entry is not None}

    def number(self, name: str) -> float | None:
        """Return the number with this name, or None."""
        try:
            return float(self.entries[name])
        except (KeyError, ValueError):
            return None

    def count(self, name: str) -> int | None:
        """Return the whole number with this name, or None."""
        value = self.number(name)
        return None if value is None or value % 1 else int(value)

    @property
    def is_stans(self) -> bool:
        """Check whether CmdStan wrote the file."""
        return "stan_version_major" in self.entries or "method" in self.entries

    @property
    def model(self) -> str:
        """The name of the Stan program."""
        return self.entries.get("model", "").removesuffix("_model")

    @property
    def method(self) -> str:
        """The method by onebasin's name for it; empty if the file records none."""
        method, algorithm = self.entries.get("method", ""), self.entries.get("algorithm", "")
        if method == "variational":
            return f"advi-{algorithm}"
        if method != "sample":
            return method
        if algorithm == "fixed_param":
            return "fixed-param"
        return {"nuts": "nuts", "static": "hmc"}.get(self.entries.get("engine", ""), "nuts")

    def saved(self, name: str) -> int | None:
        """Return the number of rows that a finished run writes for its iterations; None if it is unknown."""
        count, thin = self.count(name), self.count("thin") or 1
        return None if count is None else -(-count // max(thin, 1))

    def seconds(self, phase: str) -> float:
        """Return the seconds that ``"Warm-up"`` or ``"Sampling"`` took; NaN if they are not recorded."""
        for line in self.comments:
            if (found := _SECONDS.search(line)) and found.group(2) == phase:
                return float(found.group(1))
        return float("nan")


def attributes(headers: Sequence[Header], draws: int) -> dict[str, Any]:
    """Derive root attributes from the comments of a run's chains."""
    first = headers[0]
    if not first.is_stans:
        return {}
    settings: dict[str, Any] = {"chains": len(headers), "draws": draws}
    if first.method in ("nuts", "hmc"):
        settings |= {
            "warmup": first.count("num_warmup"),
            "thin": first.count("thin"),
            "target_acceptance": first.number("delta"),
            "max_tree_depth": first.count("max_depth"),
            "metric": first.entries.get("metric"),
            "step_size": first.number("stepsize"),
        }
    version = [first.entries.get(f"stan_version_{part}") for part in ("major", "minor", "patch")]
    # Convert CmdStan's `2026-01-31 12:00:00 UTC` to ISO 8601.
    began = first.entries.get("start_datetime", "")
    began = re.sub(r"^(\S+) (\S+) UTC$", r"\1T\2+00:00", began)
    said: dict[str, Any] = {
        schema.TARGET: first.model,
        schema.PROGRAM_NAME: first.model,
        schema.ENGINE: "stan",
        schema.METHOD: first.method,
        schema.SEED: first.count("seed"),
        schema.SETTINGS: {k: v for k, v in settings.items() if v is not None},
        schema.MAX_TREE_DEPTH: first.count("max_depth") if first.method == "nuts" else None,
        schema.VERSIONS: {"stan": ".".join(filter(None, version))} if all(version) else None,
        schema.CREATED_AT: began,
    }
    phases = {schema.WARMUP_SECONDS: "Warm-up", schema.SAMPLING_SECONDS: "Sampling"}
    for name, phase in phases.items() if first.entries.get("method") == "sample" else ():
        times = [header.seconds(phase) for header in headers]
        said[name] = times if all(time == time for time in times) else None
    return {name: schema.encode(value) for name, value in said.items() if value not in (None, "")}


@contextmanager
def open_table(path: Path) -> Iterator[BufferedReader | gzip.GzipFile]:
    """Open a text file as bytes, decompressed and without its byte order mark; reject a file that is not text."""
    try:
        with path.open("rb") as plain:
            packed = plain.read(len(GZIP)) == GZIP
            plain.seek(0)
            file = gzip.GzipFile(fileobj=plain) if packed else plain
            if file.read(len(_BOM)) != _BOM:
                file.seek(0)
            yield file
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(
            path, "is not a readable text file, so it cannot be a CSV file: use another copy"
        ) from error


STATS = schema.OLDER | {
    "log_p__": schema.LP,
    **dict.fromkeys(("lp_approx__", "log_q__", "log_g__"), schema.LOG_Q),
}
"""Map from column names, including those of CmdStan's methods, to statistics."""
TYPES = {schema.TREE_DEPTH: np.int64, schema.N_STEPS: np.int64, schema.DIVERGING: np.bool_}

_COLUMNS = {stat: n for n, stat in reversed(STATS.items()) if n.endswith("__")}

CHAIN_COLUMNS = ("chain", ".chain", "chain__")
ORDER_COLUMNS = (".iteration", "iteration", "iter__", "draw", ".draw", "draw__")
"""Columns that number the draws of a chain; the first of these in a table determines the order."""
COUNTING = (*CHAIN_COLUMNS, *ORDER_COLUMNS, "")
"""Columns of a table that are neither variables nor statistics."""

_NO_DRAWS = {
    "optimize": "an optimum, which is one point",
    "diagnose": "a check of gradients",
    "log_prob": "log densities",
}
_ADAPTED = "Adaptation terminated"
"""The comment that follows the warmup rows."""
_MEANINGLESS = {"advi-meanfield": ("lp__",), "advi-fullrank": ("lp__",)}
"""Columns that are always zero for a method."""


@dataclass(frozen=True)
class ChainFile:
    """The columns and comments of one CSV file, without its values."""

    path: Path
    columns: tuple[str, ...]
    rows: int
    comments: tuple[str, ...] = ()  # Without the ``#``.
    rows_before: Mapping[str, int] = field(default_factory=dict)  # Rows before each comment.
    uneven: tuple[int, int] = (0, 0)  # First row with a wrong number of fields, and this number.
    ended: bool = True  # Whether the last line ends with a line feed.
    digest: str = ""  # The SHA-256 of the first rows.
    delimiter: str = ","

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read a file once, line by line; reject a file that is not text."""
        comments: list[str] = []
        before: dict[str, int] = {}
        names: list[str] = []
        line, delimiter, rows, uneven = b"\n", ",", -1, (0, 0)
        seen, digest = 0, hashlib.sha256()
        with open_table(path) as file:
            for line in file:
                if line.startswith(b"#"):
                    comments.append(line[1:].decode().strip())
                    before.setdefault(comments[-1], max(rows, 0))
                elif not line.isspace():
                    rows += 1
                    if not rows:
                        text = line.decode().strip("\r\n ")
                        # The most frequent candidate in the header is the delimiter.
                        bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\([^)]*\)', "", text)
                        delimiter = max(",;\t", key=bare.count)
                        names = next(csv.reader([text], delimiter=delimiter))
                        continue
                    if seen < _HEAD:
                        digest.update(line)
                        seen += len(line)
                    if (count := line.count(delimiter.encode()) + 1) != len(names):
                        uneven = uneven if uneven[0] else (rows, count)
        columns = tuple(name.strip() for name in names)
        known = columns, max(rows, 0), tuple(comments), before, uneven
        return cls(path, *known, line.endswith(b"\n"), digest.hexdigest(), delimiter)

    @cached_property
    def header(self) -> Header:
        """The settings of the run, parsed from the comments."""
        return Header(self.comments)

    @property
    def skipped(self) -> int:
        """The number of leading rows that are not draws."""
        if self.header.method.startswith("advi-"):
            return min(1, self.rows)
        if self.header.entries.get("save_warmup", "0") not in ("1", "true"):
            return 0
        # Warmup rows precede the line that reports the end of adaptation.
        ends = (count for line, count in self.rows_before.items() if line.startswith(_ADAPTED))
        warms_up = self.header.method in ("nuts", "hmc")
        warmup = (self.header.saved("num_warmup") or 0) if warms_up else 0
        return next(ends, 0) or min(warmup, self.rows)

    @property
    def draws(self) -> int:
        """The number of rows that are draws."""
        return self.rows - self.skipped

    def check(self) -> None:
        """Reject a file that has no draws or is incomplete."""
        for fault in self._faults():
            raise FormatError(self.path, fault)

    def _faults(self) -> Iterator[str]:
        if instead := _NO_DRAWS.get(self.header.entries.get("method", "")):
            yield f"has no draws (the file contains {instead}): give the output files of a sampler"
        if not self.columns or not self.draws:
            yield "has no draws: repeat the run"
        due, (row, count) = self.header.saved("num_samples"), self.uneven
        if due is not None and self.header.method != "" and self.draws < due:
            yield (
                f"has {max(self.draws, 0)} of the {due} expected draws, because the run was interrupted: omit the "
                "file, or run this chain again"
            )
        if (row and row == self.rows) or (self.header.is_stans and not self.ended):
            yield "is truncated: its last line is incomplete. Use another copy"
        if row:
            yield (
                f"has {count} field(s) in row {row}, although the file has {len(self.columns)} column(s): correct "
                "this row"
            )
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            yield f"has two columns named {twice[0]!r}: rename one"

    def frame(self) -> pd.DataFrame:
        """Read all rows, whether or not they are draws."""
        with open_table(self.path) as text:
            names: dict[str, Any] = {"header": 0, "names": list(self.columns), "index_col": False}
            how: dict[str, Any] = {"skipinitialspace": True, "low_memory": False}
            return pd.read_csv(text, sep=self.delimiter, comment="#", **names, **how)


def read_chains(files: Sequence[ChainFile]) -> xr.DataTree:
    """Read the chains of one posterior, one file each; first reject draws that do not fit into memory."""
    for file in files:
        file.check()
    check_together(files)
    first = files[0]
    needed = 8 * len(files) * first.draws * len(first.columns)
    if needed > (most := memory()):
        words = f"has {in_words(needed)} of draws, but this machine has {in_words(most)} of memory"
        raise FormatError(first.path, f"{words}: thin the draws")
    frames = [file.frame().iloc[file.skipped :] for file in files]
    frame = pd.concat(frames) if len(frames) > 1 else frames[0]
    frame = frame.drop(columns=list(_MEANINGLESS.get(first.header.method, ())))
    chain = np.repeat(np.arange(len(files)), first.draws)
    counting = () if first.header.is_stans else COUNTING
    frame = frame.drop(columns=[name for name in counting if name in frame])
    tree = _tree(frame, first.path, chain=chain)
    tree.attrs = attributes([file.header for file in files], first.draws)
    return tree


def check_together(files: Sequence[ChainFile]) -> None:
    """Reject files that are not chains of one posterior."""
    first = files[0]
    for number, file in enumerate(files[1:], 1):
        for word, remedy in (("model", "the chains of one model"), ("method", "chains of one run")):
            own, known = (getattr(each.header, word) or "(unnamed)" for each in (file, first))
            if own != known:
                raise FormatError(
                    file.path,
                    f"has the {word} {own}, whereas {first.path} has the {word} {known}: give {remedy}",
                )
        if (names := file.columns) != (due := first.columns):
            lacks = next((name for name in due if name not in set(names)), None)
            more = next((name for name in names if name not in set(due)), None)
            how = "has its columns in a different order" if more is None else f"has a column {more}"
            how = how if lacks is None else f"has no column {lacks}"
            raise FormatError(
                file.path, f"{how}, so it does not match {first.path}: give the chains of one model"
            )
        for twin in files[:number]:
            if (file.digest, file.header.count("id")) == (twin.digest, twin.header.count("id")):
                raise FormatError(
                    file.path,
                    f"has the same draws as {twin.path}: give every chain once, and sample every chain with its own "
                    "seed",
                )
    sizes = [file.draws for file in files]
    if len(set(sizes)) > 1:
        short = files[sizes.index(min(sizes))]
        raise FormatError(
            short.path,
            f"has fewer draws than {files[sizes.index(max(sizes))].path} ({min(sizes)} and {max(sizes)}). All chains "
            "of a posterior need the same number of draws: omit or rerun the short chain",
        )


def read_csv(file: ChainFile) -> xr.DataTree:
    """Read one CSV table that contains all chains."""
    file.check()
    return _tree(file.frame(), file.path)


def read_parquet(path: Path) -> xr.DataTree:
    """Read a Parquet table."""
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise PosteriorFileError(lacks("A Parquet file", "parquet")) from error
    except (OSError, ValueError) as error:  # The errors of pyarrow are ValueErrors.
        raise FormatError(
            path, "is not a readable Parquet file: it is truncated or damaged. Use another copy"
        ) from error
    return _tree(frame, path)


def _tree(frame: pd.DataFrame, path: Path, chain: np.ndarray | None = None) -> xr.DataTree:
    import xarray as xr

    try:
        return xr.DataTree.from_dict(groups_of(frame, str(path), chain))
    except ArgumentError as error:
        said = str(error)
        raise FormatError(said[:1].lower() + said[1:], "") from error  # It continues a sentence.


def groups_of(
    frame: pd.DataFrame, argument: str, chain: np.ndarray | None = None
) -> dict[str, xr.Dataset]:
    """Convert the columns of a table to groups of arrays (chain, draw, ...); messages call the table `argument`.

    `chain` gives the chain of each row, and the rows are in the order of the draws. Without it, columns of the table
    number the chains and draws. A table without a chain column has one chain.
    """
    counting: dict[str, np.ndarray] = {}
    order = np.arange(len(frame))
    if chain is None:
        frame = _flat(frame)
        # Columns without a name contain row names.
        frame = frame[[n for n in frame if n.strip() and not n.startswith("Unnamed: ")]]
        if twice := list(frame.columns[frame.columns.duplicated()]):
            raise ArgumentError(f"`{argument}` has two columns named {twice[0]!r}: rename one.")
        counting = {n: _numbers(frame[n], argument) for n in COUNTING if n in frame}
        chain = next((counting[n] for n in CHAIN_COLUMNS if n in counting), np.zeros(len(frame)))
        order = next((counting[n] for n in ORDER_COLUMNS if n in counting), order)
    if not len(frame) or np.isnan(chain).any():
        what = "has rows without a number in its chain column" if len(frame) else "has no draws"
        raise ArgumentError(f"`{argument}` {what}.")
    each = np.unique(chain, return_counts=True)[1]
    if len(set(each.tolist())) > 1:
        raise ArgumentError(
            f"The chains in `{argument}` have between {min(each)} and {max(each)} draws, but all chains must have "
            "the same number. Omit the shorter chains."
        )
    rows = np.lexsort([order, chain]).reshape(len(each), -1)
    if (order[rows][:, 1:] == order[rows][:, :-1]).any():
        raise ArgumentError(
            f"In `{argument}`, several rows of a chain have the same draw number. Add a column `.chain` with the "
            "chain numbers, and give every entry of a variable its own column."
        )
    columns = {n: _numbers(frame[n], argument)[rows] for n in frame if n not in counting}
    stats: dict[str, np.ndarray] = {}
    for n in [n for n in columns if n.endswith("__")]:
        stat = STATS.get(n, n.removesuffix("__"))
        stats[stat] = columns.pop(n).astype(TYPES.get(stat, np.float64))
    if not columns:
        raise ArgumentError(
            f"`{argument}` contains only statistics of the sampler. Add a variable."
        )
    draws = dataset_of(gathered(storable_names(columns, argument)), argument)
    numbers = {dim: np.arange(n) for dim, n in zip(schema.SAMPLE_DIMS, rows.shape, strict=True)}
    groups = {schema.POSTERIOR: draws.assign_coords(numbers)}
    return groups | ({schema.SAMPLE_STATS: dataset_of(stats, argument)} if stats else {})


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert index levels that number chains or draws to columns, and multi-level column names to plain names."""
    if by_chain := [name for name in frame.columns.names if name in CHAIN_COLUMNS]:
        stacked = frame.stack(by_chain, future_stack=True)  # The table has one column per chain.
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
        else:  # ArviZ's `theta[a]` already contains the label.
            names.append(str(first))
    return frame.set_axis(names, axis="columns")


def _numbers(column: Any, argument: str) -> np.ndarray:
    try:
        return np.asarray(column, np.float64)
    except (TypeError, ValueError):
        numbers = pd.to_numeric(column, errors="coerce")
        row = int((numbers.isna() & column.notna()).to_numpy().argmax())
        raise ArgumentError(
            f"The column {column.name!r} of `{argument}` has {str(column.iloc[row])[:20]!r} in row {row + 1}, which "
            "is not a number. Omit the column, or write NA for missing values."
        ) from None


def write(tree: xr.DataTree, path: Path, *, parquet: bool) -> None:
    """Write the draws and statistics of a posterior as one wide table, as CSV or as Parquet."""
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
    draws, stats = (real_draws(tree, group) for group in (schema.POSTERIOR, schema.SAMPLE_STATS))
    stats = {name: values for name, values in stats.items() if values.ndim == 2}
    names = ["chain", "draw", *(_COLUMNS.get(name, f"{name}__") for name in stats)]
    names += [
        entry for name, values in draws.items() for entry in entry_names(name, values.shape[2:])
    ]
    apart = len(set(names)) == len(names) and not any(set("\r\n") & set(name) for name in names)
    if not apart or set(gather(names)) != {*names[: 2 + len(stats)], *draws}:
        raise FormatError(
            path,
            "cannot be written, since some variable names would be ambiguous in a table: use .nc or .zarr",
        )
    chains, length = next(iter(draws.values())).shape[:2]
    columns = [np.repeat(np.arange(chains) + 1, length), np.tile(np.arange(length) + 1, chains)]
    for values in (*stats.values(), *draws.values()):
        columns += list(values.values.reshape(chains * length, -1).T)
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def real_draws(tree: xr.DataTree, group: str) -> dict[str, xr.DataArray]:
    """Return the real-valued arrays of a group, with chain and draw as first axes."""
    if group not in tree.children:
        return {}
    held = tree[group].to_dataset()
    return {
        str(name): array.transpose(*schema.SAMPLE_DIMS, ...)
        for name, array in held.data_vars.items()
        if array.dtype.kind in "biuf" and set(schema.SAMPLE_DIMS) <= set(array.dims)
    }
