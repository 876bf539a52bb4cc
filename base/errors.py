"""The errors that onebasin raises, and their base class."""

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
    """Raised when an argument, an option or a file has a value that is not allowed."""


class ArgumentTypeError(OnebasinError, TypeError):
    """Raised when an argument has a type that is not allowed."""


class ModelDataError(OnebasinError, ValueError):
    """Raised when a NumPyro model does not accept its data: a missing file, malformed JSON or wrong arguments."""


class UserCodeFailed(OnebasinError, RuntimeError):
    """Raised when the user's function, such as a simulator, raises an error; the message quotes it."""


@contextmanager
def code_of_user(what: str) -> Iterator[None]:
    """Turn an error of the user's function, called `what` in the message, into `UserCodeFailed`."""
    try:
        yield
    except OnebasinError:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0][:300].rstrip(".")
        words = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise UserCodeFailed(f"{what} raised {words}.") from error


class RunCancelled(OnebasinError, RuntimeError):
    """Raised when a run is stopped before its end."""


class PosteriorFileError(OnebasinError, RuntimeError):
    """Raised when a posterior file cannot be written or read.

    Examples
    --------
    >>> issubclass(ob.errors.PosteriorFileError, RuntimeError)
    True
    """


class FormatError(OnebasinError, ValueError):
    """Raised when a file cannot be read as a posterior.

    `fault` completes the sentence after the file's name, without a full stop. If empty, `path` is the whole message.
    """

    def __init__(self, path: Path | str, fault: str) -> None:
        super().__init__(f"{path} {fault}." if fault else str(path))


class WriteError(OnebasinError, OSError):
    """Raised when a file cannot be written, because of a full disk, a quota, a read-only folder or a broken disk.

    Attributes
    ----------
    path : Path
        The file; its earlier content is unchanged.
    """

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


class NameTaken(WriteError):
    """Raised when another process has created the output file meanwhile; the result is in a file of a different name.

    Attributes
    ----------
    kept : Path
        The file with the result.
    """

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            path,
            f"{path} was created by another process meanwhile and was left unchanged; the result is in {kept}.",
        )
        self.kept = kept


class InUse(OnebasinError, RuntimeError):
    """Raised when another process or thread is writing the file or folder."""


class InferenceError(OnebasinError, RuntimeError):
    """Raised when a method cannot run on its target; the message says why and what to do.

    Examples
    --------
    >>> issubclass(ob.errors.SymmetryError, ob.errors.InferenceError)
    True
    """


class AdviFailed(InferenceError):
    """Raised when variational inference fails in every attempt.

    Attributes
    ----------
    attempts : list of dict
        The attempts in order: settings, seed and the engine's message.
    """

    def __init__(self, message: str, attempts: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.attempts = attempts


class NoFingerprint(InferenceError):
    """Raised when a part of a run has no fingerprint; the message is a clause that names it."""


class StudyError(OnebasinError, ValueError):
    """Raised when an option does not fit, or a folder is in use; the message says what to do."""


class TaskError(OnebasinError, RuntimeError):
    """Raised when tasks cannot run elsewhere: no scheduler answers, versions differ, or a model cannot be sent."""


class TaskDied(OnebasinError, RuntimeError):
    """Raised when a process or its worker is killed; the message is a clause that says how."""


class UsageError(StudyError):
    """Raised when a command lacks a required argument."""


class Interrupted(OnebasinError):
    """Raised when a run is stopped from the keyboard; the message says what is kept.

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
"""Largest seed: Stan's seeds are unsigned 32-bit integers."""


def error_in_words(error: Exception) -> str:
    """Return an error's message without its full stop, after the error's name if it is not onebasin's own."""
    text = str(error).strip().removesuffix(".")
    return text if isinstance(error, OnebasinError) and text else f"{type(error).__name__}: {text}"


def nearby(path: Path) -> str:
    """Return a question that suggests a file with a name similar to a missing one, or nothing."""
    try:
        names = [file.name for file in path.parent.iterdir() if file.name != path.name]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f" Did you mean {path.with_name(near[0])}?" if near else ""


class StanError(OnebasinError, RuntimeError):
    """Base class of errors of Stan programs and CmdStan.

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
    """Raised when no CmdStan directory is found, or ``CMDSTAN`` does not name one."""


class HomeBuildError(StanError):
    """Raised when CmdStan cannot be assembled.

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
    """Raised when a Stan program cannot be read, parsed or compiled; the compiler's message is included."""


class StanDataError(StanError, ValueError):
    """Raised when a Stan program does not accept its data: a missing file, malformed JSON or a missing variable."""


class StanRunError(StanError):
    """Raised when a run of a Stan program fails; the program's message is included."""
