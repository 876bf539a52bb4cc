"""A file that holds no posterior that can be read, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

from ..errors import OnebasinError


class FormatError(OnebasinError, ValueError):
    """A file that cannot be read as a posterior; the fault stands after its name, without a stop."""

    def __init__(self, path: Path | str, fault: str) -> None:
        super().__init__(f"{path} {fault}." if fault else str(path))

    @classmethod
    def whole(cls, message: str) -> FormatError:
        """An error whose message is this."""
        return cls(message, "")
