"""CmdStan's CSV files, one a chain of one run: read a block at a time into a scratch, whatever their size.

Rows of warmup are left out, and so is the first row of ADVI, which is its mean and no draw. Columns that end in two
underscores are the method's, under ArviZ's names.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from gzip import BadGzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onebasin.base.errors import FormatError
from onebasin.base.files.sizes import ClaimError

from . import schema
from .csv_blocks import Survey, blocks, rows_at_once
from .entries import Entries, gather
from .scratch import Scratch
from .stan_header import Header, attributes
from .storable import storable_names

if TYPE_CHECKING:
    import xarray as xr

STATS = schema.OLDER | {
    "log_p__": schema.LP,
    **dict.fromkeys(("lp_approx__", "log_q__", "log_g__"), schema.LOG_Q),
}
"""Columns of statistics, those of CmdStan's methods among them: the statistic that each is."""
TYPES = {schema.TREE_DEPTH: np.int64, schema.N_STEPS: np.int64, schema.DIVERGING: np.bool_}
"""Types of statistics that are no real numbers."""

CHAIN_COLUMNS = ("chain", ".chain", "chain__")
ORDER_COLUMNS = (".iteration", "iteration", "iter__", "draw", ".draw", "draw__")
"""Columns that number a chain's draws; the first one that is there tells their order."""
COUNTING = (*CHAIN_COLUMNS, *ORDER_COLUMNS, "")
"""Columns of tables that are neither variables nor statistics."""

_NO_DRAWS = {
    "optimize": "an optimum, which is one point",
    "diagnose": "a check of gradients",
    "log_prob": "log densities",
}
_ADAPTED = "Adaptation terminated"
"""The comment after the rows of warmup."""
_MEANINGLESS = {"advi-meanfield": ("lp__",), "advi-fullrank": ("lp__",)}
"""Columns that are zero throughout."""


@dataclass(frozen=True)
class ChainFile(Survey):
    """One file: what is in it, and which of its rows are draws."""

    @classmethod
    def of(cls, path: Path) -> Self:
        """Go through a file once; refuse what is no text."""
        try:
            return super().of(path)
        except (ValueError, EOFError, BadGzipFile, zlib.error) as error:
            raise FormatError(path, "is no text, as CSV files are") from error

    @cached_property
    def header(self) -> Header:
        """The settings of the run, from its comments."""
        return Header(self.comments)

    @property
    def skipped(self) -> int:
        """The number of leading rows that are not draws."""
        if self.header.method.startswith("advi-"):
            return min(1, self.rows)
        if self.header.entries.get("save_warmup", "0") not in ("1", "true"):
            return 0
        # Those before the line that says that adaptation has ended.
        ends = (count for line, count in self.rows_before.items() if line.startswith(_ADAPTED))
        warms_up = self.header.method in ("nuts", "hmc")
        warmup = (self.header.saved("num_warmup") or 0) if warms_up else 0
        return next(ends, 0) or min(warmup, self.rows)

    @property
    def draws(self) -> int:
        """The number of rows that are draws."""
        return self.rows - self.skipped

    def check(self) -> None:
        """Refuse a file that holds no draws, or not all of them."""
        if instead := _NO_DRAWS.get(self.header.entries.get("method", "")):
            raise FormatError(self.path, f"holds {instead}, and no draws: give files of a sampler")
        if not self.columns or not self.draws:
            raise FormatError(self.path, "holds no draws: its run wrote none, or was cut short")
        due = self.header.saved("num_samples")
        if due is not None and self.header.method != "" and self.draws < due:
            raise FormatError(
                self.path,
                f"holds {max(self.draws, 0)} of the {due} draws that its run was to write: it was cut short, so "
                "leave it out or run that chain again",
            )
        if self.cut or (self.header.is_stans and not self.ended):
            raise FormatError(
                self.path,
                "is cut short: its last line does not come to its end, so take another copy",
            )

    def tables(self) -> Iterator[np.ndarray]:
        """Read the rows, draws or not, some at a time."""
        try:
            yield from blocks(self)
        except ValueError as error:
            raise FormatError(
                self.path, f"cannot be read as a table of numbers: {error}"
            ) from error


def read(files: Sequence[ChainFile], *, lazy: bool) -> xr.DataTree:
    """Read the chains of one posterior, a file each."""
    for file in files:
        file.check()
    check_together(files)
    draws = files[0].draws
    told = attributes([file.header for file in files], draws)

    def rows() -> Iterator[tuple[int, np.ndarray]]:
        for number, file in enumerate(files):
            skip = file.skipped
            for table in file.tables():
                yield number, table[skip:]
                skip = max(0, skip - len(table))

    return collect(files[0], layout(files[0]), (len(files), draws), rows(), told, lazy=lazy)


def collect(
    file: ChainFile,
    columns: Layout,
    size: tuple[int, int],
    rows: Iterable[tuple[int, np.ndarray]],
    attributes: Mapping[str, Any],
    *,
    lazy: bool,
) -> xr.DataTree:
    """Lay rows, some at a time with the number of their chain, down as a posterior of so many chains and draws."""
    kinds = {
        group: {name: (entries.shape, kind) for name, (entries, kind) in held.items()}
        for group, held in columns.items()
    }
    try:
        scratch = Scratch(*size, kinds, rows=rows_at_once(len(file.columns)))
    except ClaimError as error:
        raise FormatError(file.path, str(error)) from None
    done = [0] * size[0]
    try:
        for chain, table in rows:
            for group, held in columns.items():
                for name, (entries, _) in held.items():
                    scratch.put(group, name, chain, done[chain], entries.take(table))
            done[chain] += len(table)
    except BaseException:
        scratch.remove()
        raise
    return scratch.tree(attributes, lazy=lazy)


Layout = dict[str, dict[str, tuple[Entries, np.dtype]]]
"""The variables of each group that a table has, with their columns and types."""


def layout(file: ChainFile) -> Layout:
    """Tell variables from statistics; columns that count rows are neither."""
    names = file.columns
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FormatError(file.path, f"has two columns of the name {twice!r}: rename one")
    counted = ("",) if file.header.is_stans else COUNTING
    neither = (*counted, *_MEANINGLESS.get(file.header.method, ()))
    stats: dict[str, tuple[Entries, np.dtype]] = {}
    held: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in neither or not name:
            continue
        if name.endswith("__"):
            stat = STATS.get(name, name.removesuffix("__"))
            kind = np.dtype(TYPES.get(stat, np.float64))
            stats.setdefault(stat, (Entries((), np.array([place])), kind))
        else:
            held[name] = place
    places = np.array(list(held.values()), int)
    variables = {
        name: (Entries(entries.shape, places[entries.columns]), np.dtype(np.float64))
        for name, entries in gather(list(held)).items()
    }
    if not variables:
        raise FormatError(file.path, "holds no variables, only what its sampler did")
    try:
        groups = {schema.POSTERIOR: storable_names(variables, str(file.path))}
    except ValueError as error:
        raise FormatError.whole(str(error)) from None
    return groups | ({schema.SAMPLE_STATS: stats} if stats else {})


def check_together(files: Sequence[ChainFile]) -> None:
    """Refuse files that are not chains of one posterior."""
    first = files[0]
    for number, file in enumerate(files[1:], 1):
        for word, remedy in (("model", "the chains of one model"), ("method", "chains of one run")):
            own, known = (getattr(each.header, word) or "(unnamed)" for each in (file, first))
            if own != known:
                raise FormatError(
                    file.path, f"is of the {word} {own}, and {first.path} of {known}: give {remedy}"
                )
        if (names := file.columns) != (due := first.columns):
            lacks = next((name for name in due if name not in set(names)), None)
            more = next((name for name in names if name not in set(due)), None)
            how = "has its columns in another order" if more is None else f"has a column {more}"
            how = how if lacks is None else f"has no column {lacks}"
            raise FormatError(
                file.path, f"{how}, different from {first.path}: give the chains of one model"
            )
        for twin in files[:number]:
            if (file.digest, file.header.count("id")) == (twin.digest, twin.header.count("id")):
                raise FormatError(
                    file.path,
                    f"holds the same draws as {twin.path}: give every chain once, each with its own seed",
                )
    sizes = [file.draws for file in files]
    if len(set(sizes)) > 1:
        short = files[sizes.index(min(sizes))]
        raise FormatError(
            short.path,
            f"has {min(sizes)} draws and {files[sizes.index(max(sizes))].path} has {max(sizes)}, but chains of one "
            "posterior have equally many: leave the odd one out, or run it again",
        )
