"""Make a Stan program ready to run, run it so that it can be watched and stopped, and read the CSV that it writes.

A program is called with CmdStan's words, in a fixed order, which keeps command lines comparable. Paths have to be
absolute, since a program runs in its own folder. cmdstanpy composes most of these, but has no static HMC, loses a
variational fit whose step size was given, and cannot stop a run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from stanio import parse_header

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
from .home.assemble import find_cmdstan
from .home.directory import Progress
from .program import StanProgram, definition

METRICS = {"diag": "diag_e", "dense": "dense_e", "unit": "unit_e"}
"""Our words for an inverse mass matrix, and CmdStan's."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files that a run reads and writes."""

    data: Path  # The program's data (JSON).
    output: Path  # The CSV file for what comes out.
    diagnostics: Path | None = None  # CSV file for a method's trace.
    digits: int = 18  # Significant figures of the numbers written; 18 keep every bit.

    def arguments(self) -> list[str]:
        """The words that name them."""
        trace = [] if self.diagnostics is None else [f"diagnostic_file={self.diagnostics}"]
        out = ["output", f"file={self.output}", *trace, f"sig_figs={self.digits}"]
        return ["data", f"file={self.data}", *out]


@dataclass(frozen=True, kw_only=True)
class CommandStart:
    """The state that a run begins from."""

    seed: int  # Of the random numbers.
    chain: int | None = None
    """A number from 1: chains of one seed draw from different places of its stream."""
    # A file of values, or the radius around 0 in the unconstrained space within which they are drawn; CmdStan's own
    # radius of 2 where it is None.
    init: Path | float | None = None

    def arguments(self) -> list[str]:
        """The words that say so."""
        number = [] if self.chain is None else [f"id={self.chain}"]
        init = [] if self.init is None else [f"init={self.init}"]
        return [*number, "random", f"seed={self.seed}", *init]


@dataclass(frozen=True, kw_only=True)
class Adapted:
    """The result of an earlier warmup."""

    step_size: float | None = None
    """Of every draw, or from which the adaptation begins; Stan's own where it is None."""
    metric: Path | None = None  # A JSON file of the inverse metric; None if it is the unit.

    def arguments(self) -> list[str]:
        """The words that say so."""
        file = [] if self.metric is None else [f"metric_file={self.metric}"]
        return [*file, *([] if self.step_size is None else [f"stepsize={self.step_size!r}"])]


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
    adapted: Adapted | None = None,
    save_warmup: bool = False,
) -> list[str]:
    """Sample with HMC; `refresh` iterations pass between two lines of progress.

    What is `adapted` already is where the warmup begins; a metric stays as it is.
    """
    how = [] if adapt else ["engaged=0"]
    if adapt and adapted is not None and adapted.metric is not None:
        # No window in which one is estimated.
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
        *(adapted.arguments() if adapted else []),
    ]


def command_line(files: Files, start: CommandStart, method: str, **options: object) -> list[str]:
    """Return the words of a run of a method, with the method's options under CmdStan's own names and in its order."""
    given = [f"{name}={value}" for name, value in options.items()]
    return [*start.arguments(), *files.arguments(), f"method={method}", *given]


_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(128 << 20)}
"""Settings of glibc that keep memory with the program between gradients.

The driver of our homes does so itself, whoever runs it; executables of a CmdStan of the user's are told.
"""


@dataclass(frozen=True)
class ReadyProgram:
    """A program compiled and its data written: all that a command line of CmdStan needs."""

    source: Path
    command: tuple[str, ...]  # Its executable, or the interpreter's driver.
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
    """Make a target's Stan side ready to run, and write its data into a folder.

    CmdStan compiles the program, for several threads if asked to, or takes it from the cache; the interpreter checks
    it. Rejected are a target without a Stan side and what the library does not take.
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
    """Return what a program declares, in the words of the library that evaluates it."""
    accepted = program.chosen().accepted
    if accepted is not None:
        return accepted.info
    return inspect(program.path, find_cmdstan(progress=progress))


def check_variables(target: Target, names: Iterable[str]) -> None:
    """Reject variables of a target's program that no posterior can store: tuples, and a posterior's own names.

    The names are the program's, with or without indices; those of tuples have a colon.
    """
    program = definition(target).path.name
    plain: dict[str, None] = {}
    for name in names:
        variable, colon, _ = name.partition(":")
        if colon:
            raise StanProgramError(
                f"{program} declares the tuple {variable.partition('.')[0]}, and a posterior stores arrays alone; "
                "declare its parts as separate variables, or the tuple within a block of braces."
            )
        plain[variable.partition(".")[0]] = None
    check_names(plain, dims=target.dims, argument=program)


def write_data(definition: StanProgram, info: ProgramInfo, folder: Path) -> Path:
    """Write the data as JSON for CmdStan; reject a declared variable that is missing or no array of numbers."""
    from stanio import write_stan_json

    absent = [name for name in info.inputs if name not in definition.data]
    if absent:
        raise lacking(", ".join(absent), definition.path.name, definition.data)
    path = folder / "data.json"
    # Only what is declared: a longer JSON file is not a mistake.
    declared = {name: definition.data[name] for name in info.inputs}
    check_numbers(declared)
    with replacing(path) as part:
        write_stan_json(str(part), declared)
    return path


def run_environment() -> dict[str, str]:
    """The environment variables of a program that runs: ours, and of its memory, where the user says nothing of it.

    A network's temporaries are larger than what glibc keeps; with a matrix of 404 x 50 a fifth of a program's time goes
    into pages that it gives back and asks for again. No draw depends on this.
    """
    return _MEMORY | os.environ


def run(
    program: ReadyProgram,
    arguments: Sequence[str],
    folder: Path,
    *,
    cancel: threading.Event | None = None,
    watch: Callable[[str], None] | None = None,
) -> str:
    """Run a program to its end in a folder; return what was printed, of much the beginning and the end.

    The arguments are as `command` composes them. What the program says of itself is given in its own names. Its end
    comes early once `cancel` is set; `watch` is called with lines as they are printed, several at a time. A program
    that fails is a `StanRunError` with its own last words, one that was stopped `RunCancelled`.
    """
    try:
        done = run_guarded(
            [*program.command, *arguments],
            folder=folder,
            environment=run_environment(),
            cancel=cancel,
            watch=watch,
        )
    except OSError as error:
        raise StanRunError(
            f"{program.name} cannot be started: {error.strerror or error}."
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
"""Numbers that are parsed at once: a chain's text and its arrays do not fit into memory together."""

_METRICS = {
    "Diagonal elements of inverse mass matrix:": 1,
    "Elements of inverse mass matrix:": 2,
    "No free parameters for unit metric": 0,
}
"""The comments that announce a metric, and its number of axes; nothing follows for a unit metric."""


@dataclass(frozen=True)
class Output:
    """The contents of one CSV file."""

    method: dict[str, np.ndarray]  # Columns of the method, such as ``lp__``: name to array (draw,).
    variables: dict[str, np.ndarray]  # The program's variables: name to array (draw, ...).
    comments: tuple[str, ...]  # Comment lines without their ``#``.

    def seconds(self, phase: str) -> float:
        """Time of ``"Warm-up"`` or ``"Sampling"``, as CmdStan measured it; NaN if it wrote none."""
        return Header(self.comments).seconds(phase)


def read(path: Path, *, printed: str = "") -> Output:
    """Read a CSV file of draws.

    One that is absent, holds no header or cannot be read is rejected, so that nothing half-written is taken for a
    result; `printed`, by the program, is for the message where it wrote no draws.
    """
    parts = list(read_blocks(path, printed=printed))
    method, variables = (
        {name: np.concatenate([getattr(part, kind)[name] for part in parts]) for name in names}
        for kind, names in (("method", parts[0].method), ("variables", parts[0].variables))
    )
    return Output(method, variables, parts[0].comments)


def read_blocks(path: Path, *, printed: str = "") -> Iterator[Output]:
    """Read a CSV file of draws like `read`, in blocks of a few megabytes; at least one, even without draws.

    Yielded are the next draws, each with the comments of the whole file.
    """
    try:
        header = pd.read_csv(path, comment="#", nrows=0).columns
    except (FileNotFoundError, pd.errors.EmptyDataError) as error:
        said = f":\n{last_words(printed)}" if printed else "; the run was cut short."
        raise StanRunError(f"Stan wrote no draws to `{path.name}`{said}") from error
    try:
        with path.open() as file:
            comments = tuple(line[1:].strip() for line in file if line.startswith("#"))
        columns = parse_header(",".join(header))
        for table in _tables(path, len(header)):
            arrays = {name: column.extract_reshape(table) for name, column in columns.items()}
            method = {name: array for name, array in arrays.items() if name.endswith("__")}
            variables = {name: array for name, array in arrays.items() if name not in method}
            yield Output(method, variables, comments)
    except ValueError as error:  # pandas' own parser errors are some
        raise StanRunError(
            f"Stan wrote draws to `{path.name}` that cannot be read: a line is cut short or holds no numbers."
        ) from error


def keep_whole_rows(path: Path) -> int:
    """Cut a file that a program was writing when it was killed after the last whole row; return the draws that stay."""
    place, rows, width = 0, 0, None
    with path.open("rb") as file:
        for line in file:
            comment = line.startswith(b"#")
            if not line.endswith(b"\n") or b"\0" in line:  # zeros where the machine went down
                break
            if not comment:
                if width is not None and line.count(b",") != width:
                    break
                rows += width is not None
                width = line.count(b",")
            place += len(line)
    os.truncate(path, place)
    return rows


def _tables(path: Path, width: int) -> Iterator[np.ndarray]:
    """The rows, some megabytes at a time; one table without a row where there are none."""
    found = False
    reader = pd.read_csv(path, comment="#", dtype=np.float64, chunksize=max(1, _CHUNK // width))
    with reader:
        for table in reader:
            found = True
            yield table.to_numpy()
    if not found:
        yield np.empty((0, width))


@dataclass(frozen=True)
class Adaptation:
    """Step size and metric of CmdStan's warmup, for another run without it."""

    step_size: float  # Of the draws.
    inverse_metric: np.ndarray
    """Diagonal or whole matrix; empty of a unit metric. CmdStan writes six figures of it."""

    def write(self, folder: Path) -> Path | None:
        """Write the metric for CmdStan; None if it is the unit."""
        from stanio import write_stan_json

        if not self.inverse_metric.size:
            return None
        path = folder / "metric.json"
        write_stan_json(str(path), {"inv_metric": self.inverse_metric})
        return path


def read_adaptation(comments: Sequence[str], step_size: float) -> Adaptation | None:
    """Find the metric in the comments of a CSV file; None if the warmup had not ended."""
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
