"""The base of every named error, the ones of files, and the one that stands for no fault."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class OnebasinError(Exception):
    """Base of all errors that onebasin names; each is also the built-in error that it resembles.

    Attributes
    ----------
    has_lines : bool
        Whether the message may have several lines, as where it carries a program's own words.

    Examples
    --------
    >>> try:
    ...     ob.open_posterior("missing.nc")
    ... except ob.OnebasinError as error:
    ...     print(type(error).__name__)
    PosteriorFileError
    """

    has_lines: ClassVar[bool] = False


class ModelDataError(OnebasinError, ValueError):
    """Data that a NumPyro model cannot take: a missing file, malformed JSON, no or too many arguments."""


class RunCancelled(OnebasinError, RuntimeError):
    """A run that was told to stop before its end."""


class PosteriorFileError(OnebasinError, RuntimeError):
    """A posterior file that cannot be written or read.

    Examples
    --------
    >>> issubclass(ob.PosteriorFileError, RuntimeError)
    True
    """


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
    """A file that appeared where a new one was to be; what was written is kept under another name.

    Attributes
    ----------
    kept : Path
        That name.
    """

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            path,
            f"{path} has appeared since this began and was left as it is; the result is in {kept}.",
        )
        self.kept = kept


class InUse(OnebasinError, RuntimeError):
    """A file or folder that another process, or another thread of this one, is writing."""
