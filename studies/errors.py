"""Errors of the command line and of the studies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onebasin.models.errors import OnebasinError


class StudyError(OnebasinError, ValueError):
    """An option that does not fit, or a folder that is in use; the message says what to do."""


class Halted(StudyError):
    """A study that cannot go on, for a reason that is no cell's: the scheduler is gone, or a worker is not set up."""


class UsageError(StudyError):
    """A command that lacks a word."""


class Interrupted(OnebasinError):
    """A run that was stopped from the keyboard; the message says what is kept.

    Not a `RuntimeError`: whoever catches failures of a run must not take this for one.
    """


@contextmanager
def interruption_says(words: Callable[[], str]) -> Iterator[None]:
    """Say what is kept where a command is stopped.

    Parameters
    ----------
    words : callable
        Gives what follows "interrupted; "; called only then.

    Raises
    ------
    Interrupted
        In the place of `KeyboardInterrupt`.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {words()}") from None


def check_seed(seed: int) -> None:
    """Refuse a seed that one of the engines does not take.

    Raises
    ------
    StudyError
        If it is negative or too large.
    """
    from onebasin.models.checks import MAX_SEED  # here: brings NumPy along

    if not 0 <= seed <= MAX_SEED:
        raise StudyError(f"`--seed` is {seed}; it must be a whole number from 0 to {MAX_SEED}.")


def made_from(key: str, why: str) -> str:
    """Say that a cell of a study has no posterior since one that it is made from has none."""
    return f"made from {key}, which failed: {why}"
