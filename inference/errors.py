"""Errors of a run that could not be finished."""

from __future__ import annotations

from typing import Any

from onebasin.models.errors import OnebasinError
from onebasin.models.errors import PosteriorFileError as PosteriorFileError


class InferenceError(OnebasinError, RuntimeError):
    """A method that could not run on its target; the message says why and what to do.

    Examples
    --------
    >>> issubclass(ob.SymmetryError, ob.InferenceError)
    True
    """


class AdviFailed(InferenceError):
    """Variational inference that failed in every attempt.

    Attributes
    ----------
    attempts : list of dict
        What was tried, in order: settings, seed and the engine's own words.
    """

    def __init__(self, message: str, attempts: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.attempts = attempts


class NoFingerprint(InferenceError):
    """Something that decides a run's draws and cannot be told from others; the message says what, as a clause."""
