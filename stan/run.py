"""Making a Stan program ready to run, and running it, so that it can be watched and stopped."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from onebasin.base.files.writing import replacing
from onebasin.base.processes.children import run_guarded
from onebasin.base.text import shown
from onebasin.models.target import Target
from onebasin.posteriors.storable import check_names

from .acceptance import driver
from .choice import CMDSTAN
from .compile import compile_program
from .data import check_numbers, lacking
from .home.directory import Progress
from .home.errors import StanProgramError, StanRunError
from .home.search import find_cmdstan
from .interpreter.process import ending
from .program import StanProgram, definition
from .translation import ProgramInfo, in_own_names, inspect, last_words

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
    it. Refused are a target without a Stan side and what the library does not take.
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
    """Refuse variables of a target's program that no posterior can store: tuples, and a posterior's own names.

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
    """Write the data as JSON for CmdStan; refuse a declared variable that is missing or no array of numbers."""
    from stanio import write_stan_json

    absent = [name for name in info.inputs if name not in definition.data]
    if absent:
        raise lacking(", ".join(absent), definition.path.name, definition.data)
    path = folder / "data.json"
    # Only what is declared: a longer JSON file is no mistake.
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
