"""Errors of the Stan room that a user can meet."""

from pathlib import Path

from onebasin.base.errors import OnebasinError


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
    """No CmdStan directory, or ``CMDSTAN`` names something that is none."""


class HomeBuildError(StanError):
    """The CmdStan home could not be put together.

    Attributes
    ----------
    console
        The last lines of what the compiler said, empty where no compiler had run.
    log
        The file of all of it, or ``None``.
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
    """A Stan program that cannot be read, does not parse or does not compile; carries the compiler's own words."""


class StanDataError(StanError, ValueError):
    """Data that a Stan program cannot take: a missing file, malformed JSON, a declared variable that is absent."""


class StanRunError(StanError):
    """A run of a compiled program that failed; carries the program's own words."""
