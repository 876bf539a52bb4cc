"""A case: an input that somebody had, what is right of it, and how to ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One input. `ask` returns whether the answer is right, and the answer in a few words."""

    name: str
    right: str
    ask: Callable[[], tuple[bool, str]]
