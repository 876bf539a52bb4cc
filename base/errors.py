"""Errors that onebasin names: of files, of runs, of the command line; and their base."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar


class OnebasinError(Exception):
    """Base class of onebasin's errors; each also derives from the matching built-in error.

    Attributes
    ----------
    has_lines : bool
        Whether the message may have several lines, for example the output of a program.

    Examples
    --------
    >>> try:
    ...     ob.open_posterior("missing.nc")
    ... except ob.OnebasinError as error:
    ...     print(type(error).__name__)
    PosteriorFileError
    """

    has_lines: ClassVar[bool] = False

    def __reduce__(self) -> Any:
        """Pickle without calling the class, whose arguments are not the message alone."""
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(kind: type[OnebasinError], args: Any, fields: dict[str, Any]) -> OnebasinError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class ArgumentError(OnebasinError, ValueError):
    """An argument, an option or a file with a value that is not allowed."""


class ArgumentTypeError(OnebasinError, TypeError):
    """An argument of a type that is not allowed."""


class ModelDataError(OnebasinError, ValueError):
    """Data that a NumPyro model does not accept: a missing file, malformed JSON, wrong arguments."""


class UserCodeFailed(OnebasinError, RuntimeError):
    """A function of the user's own, such as a simulator, that raised an error; the message says which and what."""


@contextmanager
def code_of_user(what: str) -> Iterator[None]:
    """Turn an error of the user's function, called `what`, into `UserCodeFailed`."""
    try:
        yield
    except OnebasinError:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0][:300].rstrip(".")
        words = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise UserCodeFailed(f"{what} raised {words}.") from error


class RunCancelled(OnebasinError, RuntimeError):
    """A run that was told to stop before its end."""


class PosteriorFileError(OnebasinError, RuntimeError):
    """A posterior file that cannot be written or read.

    Examples
    --------
    >>> issubclass(ob.errors.PosteriorFileError, RuntimeError)
    True
    """


class FormatError(OnebasinError, ValueError):
    """A file that cannot be read as a posterior; the fault follows its name, without a full stop.

    Without a fault, the path is the whole message.
    """

    def __init__(self, path: Path | str, fault: str) -> None:
        super().__init__(f"{path} {fault}." if fault else str(path))


class WriteError(OnebasinError, OSError):
    """A file that could not be written: a full disk, a quota, a folder that has become read-only, a broken disk.

    Attributes
    ----------
    path : Path
        The file; what it held before is unchanged.
    """

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


class NameTaken(WriteError):
    """A file that another process created meanwhile; ours is kept under a different name.

    Attributes
    ----------
    kept : Path
        The name of our file.
    """

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            path,
            f"{path} was created by another process meanwhile and was left unchanged; the result is in {kept}.",
        )
        self.kept = kept


class InUse(OnebasinError, RuntimeError):
    """A file or folder that another process, or another thread of this one, is writing."""


class InferenceError(OnebasinError, RuntimeError):
    """A method that could not run on its target; the message says why and what to do.

    Examples
    --------
    >>> issubclass(ob.errors.SymmetryError, ob.errors.InferenceError)
    True
    """


class AdviFailed(InferenceError):
    """Variational inference that failed in every attempt.

    Attributes
    ----------
    attempts : list of dict
        The attempts in order: settings, seed and the engine's message.
    """

    def __init__(self, message: str, attempts: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.attempts = attempts


class NoFingerprint(InferenceError):
    """A part of a run has no fingerprint; the message names it in a clause."""


class StudyError(OnebasinError, ValueError):
    """An option that does not fit, or a folder that is in use; the message says what to do."""


class TaskError(OnebasinError, RuntimeError):
    """Work that cannot run in other processes: no scheduler answers, versions differ, or a model cannot be sent."""


class TaskDied(OnebasinError, RuntimeError):
    """A process, or its worker, was killed; the message says how, in a clause."""


class UsageError(StudyError):
    """A command that lacks a word."""


class Interrupted(OnebasinError):
    """A run that was stopped from the keyboard; the message says what is kept.

    It is not a `RuntimeError`, so that code that catches failed runs does not catch it.
    """


@contextmanager
def interruption_says(words: Callable[[], str]) -> Iterator[None]:
    """Turn `KeyboardInterrupt` into `Interrupted`; `words` returns the rest of the message."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {words()}") from None


MAX_SEED = 2**32 - 1
"""Stan's seeds are unsigned numbers of 32 bits."""


def error_in_words(error: Exception) -> str:
    """Return an error's message without the full stop, after the error's name if it is not ours."""
    text = str(error).strip().removesuffix(".")
    return text if isinstance(error, OnebasinError) and text else f"{type(error).__name__}: {text}"


def nearby(path: Path) -> str:
    """Return a question for a file with nearly the name of a missing one, to add to a message; or nothing."""
    try:
        names = [file.name for file in path.parent.iterdir() if file.name != path.name]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f" Did you mean {path.with_name(near[0])}?" if near else ""


class StanError(OnebasinError, RuntimeError):
    """Base class of everything that can go wrong on the way to a Stan program's output.

    Examples
    --------
    >>> try:
    ...     ob.stan_program("missing.stan")
    ... except ob.stan.StanError as error:
    ...     print(type(error).__name__)
    StanProgramError
    """

    has_lines = True


class CmdStanNotFound(StanError):
    """No CmdStan directory was found, or ``CMDSTAN`` names a wrong one."""


class HomeBuildError(StanError):
    """CmdStan could not be assembled.

    Attributes
    ----------
    console
        The last lines of the compiler's output, if it has run.
    log
        The file with all output, or ``None``.
    """

    SHOWN_LINES = 20

    def __init__(self, message: str, *, console: str = "", log: Path | None = None) -> None:
        self.console = "\n".join(console.rstrip().splitlines()[-self.SHOWN_LINES :])
        self.log = log
        parts = [message]
        if self.console:
            parts.append(self.console)
        if log is not None:
            parts.append(f"The full log is {log}.")
        super().__init__("\n".join(parts))


class StanProgramError(StanError):
    """A Stan program that cannot be read, does not parse or does not compile; with the compiler's message."""


class StanDataError(StanError, ValueError):
    """Data that a Stan program does not accept: a missing file, malformed JSON, an absent variable."""


class StanRunError(StanError):
    """A failed run of a Stan program; with the program's message."""
