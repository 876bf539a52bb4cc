"""CmdStan's CSV files, one a chain of one run: read a block at a time.

Fields end at commas, semicolons or tabs, as the header shows. A byte order mark is skipped, gzip is unpacked, and NA or
an empty field is NaN, TRUE is 1. Comments (`#`) tell the run's settings. Rows of warmup are left out, and so is the
first row of ADVI, which is its mean and no draw. Columns that end in two underscores are the method's, under ArviZ's
names.
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
from gzip import BadGzipFile
from io import BufferedReader, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onebasin.base.errors import ArgumentError, FormatError
from onebasin.base.files.sizes import in_words, memory

from . import schema
from .storable import Entries, dataset_of, gather, storable_names

if TYPE_CHECKING:
    import xarray as xr

_ENTRY = re.compile(r"(?P<name>\w+) = (?P<value>.*?)(?: \(Default\))?")
_SECONDS = re.compile(r"([\d.e+-]+) seconds \((Warm-up|Sampling)\)")


@dataclass(frozen=True)
class Header:
    """The comments of one CSV file, lines without their ``#``."""

    comments: tuple[str, ...]

    @cached_property
    def entries(self) -> dict[str, str]:
        """The first value of each name in the comments; empty for a file that Stan did not write."""
        found = (_ENTRY.fullmatch(line) for line in reversed(self.comments))
        return {entry["name"]: entry["value"].strip() for entry in found if entry is not None}

    def number(self, name: str) -> float | None:
        """A number that is said, or None."""
        try:
            return float(self.entries[name])
        except (KeyError, ValueError):
            return None

    def count(self, name: str) -> int | None:
        """A whole number that is said, or None."""
        value = self.number(name)
        return None if value is None or value % 1 else int(value)

    @property
    def is_stans(self) -> bool:
        """Check whether CmdStan wrote the file."""
        return "stan_version_major" in self.entries or "method" in self.entries

    @property
    def model(self) -> str:
        """The program's name."""
        return self.entries.get("model", "").removesuffix("_model")

    @property
    def method(self) -> str:
        """The method, in this project's words; empty if nothing is said."""
        method, algorithm = self.entries.get("method", ""), self.entries.get("algorithm", "")
        if method == "variational":
            return f"advi-{algorithm}"
        if method != "sample":
            return method
        if algorithm == "fixed_param":
            return "fixed-param"
        return {"nuts": "nuts", "static": "hmc"}.get(self.entries.get("engine", ""), "nuts")

    def saved(self, name: str) -> int | None:
        """The rows that a finished run has written of this number of iterations; None if the file does not say."""
        count, thin = self.count(name), self.count("thin") or 1
        return None if count is None else -(-count // max(thin, 1))

    def seconds(self, phase: str) -> float:
        """Time of ``"Warm-up"`` or ``"Sampling"``; NaN if there is none."""
        for line in self.comments:
            if (found := _SECONDS.search(line)) and found.group(2) == phase:
                return float(found.group(1))
        return float("nan")


def attributes(headers: Sequence[Header], draws: int) -> dict[str, Any]:
    """Give what chains of one run say of it as root attributes; what they do not say is left out."""
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
    # CmdStan's `2026-01-31 12:00:00 UTC` as ISO 8601 writes it.
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


NUMBERS = 1 << 21
"""Numbers that are parsed at once: a table's text and its arrays do not fit into memory together."""

_HEAD = 1 << 20
"""Bytes of rows by which two tables are told apart."""


GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_WORDS = dict.fromkeys(("", "na", "n/a", "null"), float("nan")) | {"true": 1.0, "false": 0.0}
"""Fields that are not numbers, in small letters, and what they stand for."""


@contextmanager
def open_table(path: Path) -> Iterator[BufferedReader | gzip.GzipFile]:
    """Open a file's text as bytes, unpacked and after its byte order mark."""
    with path.open("rb") as plain:
        packed = plain.read(len(GZIP)) == GZIP
        plain.seek(0)
        file = gzip.GzipFile(fileobj=plain) if packed else plain
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        yield file


def blocks(table: ChainFile) -> Iterator[np.ndarray]:
    """Read the rows after the header, about `NUMBERS` numbers at a time, each as its text says to the last bit.

    A row of too few or too many numbers is rejected, and so is a field that is no number; the message says where.
    """
    width, rows = len(table.columns), 0
    with open_table(table.path) as raw, TextIOWrapper(raw, encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#") and not line.isspace())
        next(lines, None)
        while lines_read := list(islice(lines, max(1, NUMBERS // max(width, 1)))):
            try:
                found = np.loadtxt(lines_read, delimiter=table.delimiter, comments=None, ndmin=2)
            except ValueError:  # fields may be missing
                found = np.array(
                    [_row(line, table, rows + n) for n, line in enumerate(lines_read, start=1)]
                )
            if found.shape[1] != width:
                raise ArgumentError(f"a row has {found.shape[1]} numbers instead of {width}")
            yield found
            rows += len(lines_read)


def _row(line: str, table: ChainFile, number: int) -> list[float]:
    fields = [field.strip().strip('"') for field in line.rstrip("\r\n").split(table.delimiter)]
    if len(fields) != len(table.columns):
        raise ArgumentError(
            f"row {number} has {len(fields)} of {len(table.columns)} fields: the line is cut short or too long"
        )
    out = []
    for name, text in zip(table.columns, fields, strict=True):
        try:
            word = text.lower()
            out.append(_WORDS[word] if word in _WORDS else float(text))
        except ValueError:
            advice = "leave the column out, or write NA"
            if text.replace(",", "").lstrip("+-").isdigit():
                advice = "write decimal points"
            elif tuple(fields) == table.columns:
                advice = "a second header begins there, so give each chain a file of its own"
            elif name.strip("._") in schema.SAMPLE_DIMS:
                advice = "count chains and draws"
            raise ArgumentError(
                f"column {name!r} holds {text[:20]!r} in row {number}, which is no number: {advice}"
            ) from None
    return out


STATS = schema.OLDER | {
    "log_p__": schema.LP,
    **dict.fromkeys(("lp_approx__", "log_q__", "log_g__"), schema.LOG_Q),
}
"""Columns of statistics, those of CmdStan's methods among them: the statistic that each is."""
TYPES = {schema.TREE_DEPTH: np.int64, schema.N_STEPS: np.int64, schema.DIVERGING: np.bool_}
"""Types of statistics that are not real numbers."""

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
class ChainFile:
    """One file: its shape, header and comments, without its numbers; and which of its rows are draws."""

    path: Path  # The file.
    columns: tuple[str, ...]  # Their names; empty if there are none.
    rows: int  # Number of rows.
    comments: tuple[str, ...] = ()  # Lines of comment, without their ``#``.
    rows_before: Mapping[str, int] = field(default_factory=dict)  # Of a comment.
    cut: bool = False  # The last row has too few fields or too many.
    ended: bool = True  # The last line ends as lines do.
    digest: str = ""  # Of the first rows.
    delimiter: str = ","  # The sign at which its fields end.

    @classmethod
    def of(cls, path: Path) -> Self:
        """Go through a file once, line by line; reject what is not a text."""
        try:
            return cls._surveyed(path)
        except (ValueError, EOFError, BadGzipFile, zlib.error) as error:
            raise FormatError(path, "is no text, as CSV files are") from error

    @classmethod
    def _surveyed(cls, path: Path) -> Self:
        comments: list[str] = []
        before: dict[str, int] = {}
        header, last, line, rows = b"", b"", b"\n", -1
        seen, digest = 0, hashlib.sha256()
        with open_table(path) as file:
            for line in file:
                if line.startswith(b"#"):
                    comments.append(line[1:].decode().strip())
                    before.setdefault(comments[-1], max(rows, 0))
                elif not line.isspace():
                    if rows < 0:
                        header = line
                    elif seen < _HEAD:
                        digest.update(line)
                        seen += len(line)
                    last, rows = line, rows + 1
        text = header.decode().strip("\r\n ")
        # Fields end at the sign that the header has most of, a comma in doubt.
        bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\([^)]*\)', "", text)
        delimiter = max(",;\t", key=bare.count)
        names = next(csv.reader([text], delimiter=delimiter), []) if header else []
        return cls(
            path,
            tuple(name.strip() for name in names),
            max(rows, 0),
            tuple(comments),
            before,
            rows > 0 and last.count(delimiter.encode()) + 1 != len(names),
            line.endswith(b"\n"),
            digest.hexdigest(),
            delimiter,
        )

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
        """Reject a file that holds no draws, or not all of them."""
        if instead := _NO_DRAWS.get(self.header.entries.get("method", "")):
            raise FormatError(
                self.path, f"holds {instead}, and no draws: give a sampler's output files"
            )
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


def read(files: Sequence[ChainFile]) -> xr.DataTree:
    """Read the chains of one posterior, a file each; draws that memory cannot hold are rejected beforehand."""
    import xarray as xr

    for file in files:
        file.check()
    check_together(files)
    size, columns = (len(files), files[0].draws), layout(files[0])
    if (needed := 8 * size[0] * size[1] * len(files[0].columns)) > (most := memory()):
        words = f"holds {in_words(needed)} of draws, more than the {in_words(most)} of memory here"
        raise FormatError(files[0].path, f"{words}: thin them")
    arrays = {
        group: {n: np.empty((*size, *e.shape), kind) for n, (e, kind) in held.items()}
        for group, held in columns.items()
    }
    for chain, file in enumerate(files):
        done = -file.skipped
        for table in file.tables():
            kept, first = table[max(0, -done) :], max(0, done)
            for group, held in columns.items():
                for name, (entries, _) in held.items():
                    arrays[group][name][chain, first : first + len(kept)] = entries.take(kept)
            done += len(table)
    tree = xr.DataTree.from_dict({g: dataset_of(held, "path") for g, held in arrays.items()})
    tree.attrs = attributes([file.header for file in files], size[1])
    return tree


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
    """Reject files that are not chains of one posterior."""
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
