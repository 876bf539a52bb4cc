"""Prepare a Stan program, run it so that it can be watched and stopped, and read its CSV file.

A program gets CmdStan's arguments in a fixed order, so that command lines can be compared. Paths must be absolute,
since a program runs in its own folder. cmdstanpy also composes command lines, but it lacks static HMC, loses a
variational fit with a given step size, and cannot stop a run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from stanio import parse_header, write_stan_json

from onebasin.base.errors import StanProgramError, StanRunError
from onebasin.base.files.writing import replacing
from onebasin.base.processes.children import ending, run_guarded
from onebasin.base.text import shown
from onebasin.models.target import Target
from onebasin.posteriors.storable import check_names
from onebasin.posteriors.tables import Header

from .choice import CMDSTAN, driver
from .compile import ProgramInfo, compile_program, in_own_names, inspect, last_words
from .data import check_numbers, lacking
from .home.assemble import Progress, find_cmdstan
from .program import StanProgram, definition

METRICS = {"diag": "diag_e", "dense": "dense_e", "unit": "unit_e"}
"""Names of inverse mass matrices in onebasin, and in CmdStan."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files that a run reads and writes."""

    data: Path  # JSON.
    output: Path  # CSV file of the draws.
    diagnostics: Path | None = None  # CSV file of a method's trace.
    digits: int = 18  # Significant digits of the output; 18 keep every bit.

    def arguments(self) -> list[str]:
        """Return the arguments that name the files."""
        trace = [] if self.diagnostics is None else [f"diagnostic_file={self.diagnostics}"]
        out = ["output", f"file={self.output}", *trace, f"sig_figs={self.digits}"]
        return ["data", f"file={self.data}", *out]


@dataclass(frozen=True, kw_only=True)
class CommandStart:
    """The seed and the starting point of a run."""

    seed: int
    chain: int | None = None  # From 1; chains with the same seed use different parts of its stream.
    # A file of values, or the radius around 0 in the unconstrained space; by default CmdStan's radius of 2.
    init: Path | float | None = None

    def arguments(self) -> list[str]:
        """Return the arguments for this start."""
        number = [] if self.chain is None else [f"id={self.chain}"]
        init = [] if self.init is None else [f"init={self.init}"]
        return [*number, "random", f"seed={self.seed}", *init]


@dataclass(frozen=True)
class Adaptation:
    """The result of a warmup, for a run that starts from it."""

    step_size: float | None  # Fixed, or the start of the adaptation; by default Stan's.
    inverse_metric: np.ndarray  # Diagonal or matrix; empty for a unit metric.

    def arguments(self, folder: Path) -> list[str]:
        """Return the arguments; the metric is written to a JSON file in the folder."""
        words = [] if self.step_size is None else [f"stepsize={self.step_size!r}"]
        if self.inverse_metric.size:
            path = folder / "metric.json"
            write_stan_json(str(path), {"inv_metric": self.inverse_metric})
            words.insert(0, f"metric_file={path}")
        return words


def sample(
    engine: list[str],
    files: Files,
    start: CommandStart,
    *,
    draws: int,
    warmup: int,
    target_acceptance: float,
    metric: str,
    refresh: int,
    threads: int = 1,
    adapt: bool = True,
    adapted: Sequence[str] = (),
    save_warmup: bool = False,
) -> list[str]:
    """Return the arguments of HMC; it prints progress every `refresh` iterations.

    The warmup starts from `adapted`, the arguments of an `Adaptation`; a given metric is not adapted again.
    """
    how = [] if adapt else ["engaged=0"]
    if adapt and any(word.startswith("metric_file=") for word in adapted):
        # Without a window, no metric is estimated.
        how = ["init_buffer=0", f"term_buffer={warmup}", "window=0"]
    return [
        *([] if threads == 1 else [f"num_threads={threads}"]),
        *start.arguments(),
        *files.arguments(),
        f"refresh={refresh}",
        *("method=sample", f"num_samples={draws}", f"num_warmup={warmup}"),
        *(["save_warmup=1"] if save_warmup else []),
        *("adapt", f"delta={target_acceptance!r}", *how),
        *("algorithm=hmc", *engine, f"metric={METRICS[metric]}"),
        *adapted,
    ]


def command_line(files: Files, start: CommandStart, method: str, **options: object) -> list[str]:
    """Return the arguments of a method, with its options under CmdStan's names and in CmdStan's order."""
    given = [f"{name}={value}" for name, value in options.items()]
    return [*start.arguments(), *files.arguments(), f"method={method}", *given]


_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(128 << 20)}
"""Settings of glibc that make a program keep the memory of a network's temporary arrays for the next gradient.

With a matrix of 404 x 50, a fifth of the time would be spent on returning pages and requesting them again. Draws do not
depend on these settings. The driver of assembled CmdStan homes has them compiled in.
"""


@dataclass(frozen=True)
class ReadyProgram:
    """A program that is ready to run, with its data in a file."""

    source: Path
    command: tuple[str, ...]  # The executable, or the interpreter's driver.
    data: Path
    info: ProgramInfo

    @property
    def name(self) -> str:
        """The program's name in messages."""
        return shown(self.source.stem)


def make_ready(
    target: Target,
    folder: Path,
    *,
    engine: str = CMDSTAN,
    threads: bool = False,
    progress: Progress | None = None,
) -> ReadyProgram:
    """Prepare a target's Stan program, and write its data into a folder.

    CmdStan compiles the program, for several threads if `threads`, or takes it from the cache; the interpreter checks
    it. Reject a target without a Stan program, and variables that no posterior can store.
    """
    source = definition(target)
    accepted = source.chosen(engine).accepted
    if accepted is not None:
        info, command = accepted.info, driver(source.path)
    else:
        model, info = compile_program(source.path, threads=threads, progress=progress)
        command = (str(model.exe_file),)
    if not target.is_network:
        tuples = [f"{name}:" for name in info.tuples]
        check_variables(target, (*tuples, *info.parameters, *info.derived))
    return ReadyProgram(source.path, command, write_data(source, info, folder), info)


def declarations(program: StanProgram, progress: Progress | None = None) -> ProgramInfo:
    """Return the declarations of a program, according to the library that evaluates it."""
    accepted = program.chosen().accepted
    if accepted is not None:
        return accepted.info
    return inspect(program.path, find_cmdstan(progress=progress))


def check_variables(target: Target, names: Iterable[str]) -> None:
    """Reject variables that no posterior can store: tuples, whose names contain a colon, and reserved names."""
    program = definition(target).path.name
    plain: dict[str, None] = {}
    for name in names:
        variable, colon, _ = name.partition(":")
        if colon:
            raise StanProgramError(
                f"{program} declares the tuple {variable.partition('.')[0]}, but a posterior can store only arrays. "
                "Declare separate variables, or move the tuple into a local block."
            )
        plain[variable.partition(".")[0]] = None
    check_names(plain, dims=target.dims, argument=program)


def write_data(definition: StanProgram, info: ProgramInfo, folder: Path) -> Path:
    """Write the data as JSON; reject a declared variable that is missing or not an array of numbers."""
    absent = [name for name in info.inputs if name not in definition.data]
    if absent:
        raise lacking(", ".join(absent), definition.path.name, definition.data)
    path = folder / "data.json"
    # Other variables are allowed, but not written.
    declared = {name: definition.data[name] for name in info.inputs}
    check_numbers(declared)
    with replacing(path) as part:
        write_stan_json(str(part), declared)
    return path


def run(
    program: ReadyProgram,
    arguments: Sequence[str],
    folder: Path,
    *,
    cancel: threading.Event | None = None,
    watch: Callable[[str], None] | None = None,
) -> str:
    """Run a program in a folder and return its output, shortened in the middle if it is long.

    If `cancel` is set, stop the program and raise `RunCancelled`. `watch` is called with lines as they are printed. If
    the program fails, raise `StanRunError` with its last message.
    """
    try:
        done = run_guarded(
            [*program.command, *arguments],
            folder=folder,
            environment=_MEMORY | os.environ,
            cancel=cancel,
            watch=watch,
        )
    except OSError as error:
        raise StanRunError(
            f"The program {program.name} cannot be started ({error.strerror or error}). Compile it again."
        ) from error
    printed = in_own_names(done.printed, program.source)
    if done.code:
        if done.code < 0:
            raise StanRunError(f"{program.name} {ending(done.code)}.")
        raise StanRunError(
            f"{program.name} ended with exit code {done.code}:\n{last_words(printed)}"
        )
    return printed


_CHUNK = 1 << 16
"""Number of values that are parsed at once."""
_METRICS = {
    "Diagonal elements of inverse mass matrix:": 1,
    "Elements of inverse mass matrix:": 2,
    "No free parameters for unit metric": 0,
}
"""The comment before a metric, and the number of axes of the metric."""


@dataclass(frozen=True)
class Output:
    """The contents of one CSV file."""

    method: dict[str, np.ndarray]  # Columns of the method, such as ``lp__``: name to array (draw,).
    variables: dict[str, np.ndarray]  # The program's variables: name to array (draw, ...).
    comments: tuple[str, ...]  # Without their ``#``.

    def seconds(self, phase: str) -> float:
        """Return the time of ``"Warm-up"`` or ``"Sampling"``; NaN if the file has none."""
        return Header(self.comments).seconds(phase)


def read(path: Path, *, printed: str = "") -> Output:
    """Read a CSV file of draws; if it is missing or incomplete, raise an error that quotes the program's output."""
    parts = list(read_blocks(path, printed=printed))
    method, variables = (
        {name: np.concatenate([getattr(part, kind)[name] for part in parts]) for name in names}
        for kind, names in (("method", parts[0].method), ("variables", parts[0].variables))
    )
    return Output(method, variables, parts[0].comments)


def read_blocks(path: Path, *, printed: str = "") -> Iterator[Output]:
    """Read a CSV file of draws in blocks of a few megabytes, each with the comments of the whole file.

    A file without draws gives one empty block.
    """
    try:
        header = pd.read_csv(path, comment="#", nrows=0).columns
    except (FileNotFoundError, pd.errors.EmptyDataError) as error:
        said = f":\n{last_words(printed)}" if printed else ". The run was cut short: repeat it."
        raise StanRunError(f"Stan wrote no draws to `{path.name}`{said}") from error
    try:
        with path.open() as file:
            comments = tuple(line[1:].strip() for line in file if line.startswith("#"))
        columns = parse_header(",".join(header))
        rows = max(1, _CHUNK // len(header))
        with pd.read_csv(path, comment="#", dtype=np.float64, chunksize=rows) as tables:
            for table in tables:
                numbers = table.to_numpy()
                arrays = {n: column.extract_reshape(numbers) for n, column in columns.items()}
                method = {name: array for name, array in arrays.items() if name.endswith("__")}
                variables = {name: array for name, array in arrays.items() if name not in method}
                yield Output(method, variables, comments)
    except ValueError as error:  # This includes pandas' ParserError.
        raise StanRunError(
            f"Stan's draws in `{path.name}` cannot be read, because a line is incomplete or is not numeric. Repeat "
            "the run."
        ) from error


def keep_whole_rows(path: Path) -> int:
    """Truncate the file of a killed program after the last whole row; return the number of remaining draws."""
    place, rows, width = 0, 0, None
    with path.open("rb") as file:
        for line in file:
            comment = line.startswith(b"#")
            if not line.endswith(b"\n") or b"\0" in line:  # Zeros appear after a power cut.
                break
            if not comment:
                if width is not None and line.count(b",") != width:
                    break
                rows += width is not None
                width = line.count(b",")
            place += len(line)
    os.truncate(path, place)
    return rows


def read_adaptation(comments: Sequence[str], step_size: float) -> Adaptation | None:
    """Find the metric in the comments of a CSV file; return None before the end of the warmup."""
    for place, line in enumerate(comments):
        axes = _METRICS.get(line)
        if axes is None:
            continue
        # A diagonal is one line; a matrix has as many lines as its first has numbers.
        lines = axes if axes < 2 else comments[place + 1].count(",") + 1
        rows = [line.split(",") for line in comments[place + 1 : place + 1 + lines]]
        metric = np.array(rows, dtype=np.float64)
        return Adaptation(step_size, metric[0] if axes == 1 else metric)
    return None
