"""CmdStan's command lines, as far as `command` composes them, read back into numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SECTIONS = ("data", "output", "random", "adapt")


@dataclass(frozen=True)
class Arguments:
    """The words of a command line; a key below `data`, `output`, `random` or `adapt` has these and a dot before it."""

    values: Mapping[str, str]

    @property
    def method(self) -> str:
        """The method."""
        return self.values["method"]

    @property
    def data(self) -> Path | None:
        """The JSON file of the data."""
        return self._path("data.file")

    @property
    def output(self) -> Path:
        """The CSV file for the draws."""
        return Path(self.values["output.file"])

    @property
    def diagnostics(self) -> Path | None:
        """The CSV file for the method's trace."""
        return self._path("output.diagnostic_file")

    @property
    def digits(self) -> int:
        """Significant figures of the numbers that are written."""
        return self.whole("output.sig_figs", 8)

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return self.whole("random.seed", 1)

    @property
    def chain(self) -> int:
        """The chain's number, from 1."""
        return self.whole("id", 1)

    @property
    def start(self) -> Path | float:
        """The JSON file of initial values, or the radius within which they are drawn."""
        text = self.values.get("init", "2")
        try:
            return float(text)
        except ValueError:
            return Path(text)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a value as text."""
        return self.values[key] if default is None else self.values.get(key, default)

    def whole(self, key: str, default: int) -> int:
        """Return a value as a whole number."""
        return int(self.values.get(key, default))

    def number(self, key: str, default: float) -> float:
        """Return a value as a number."""
        return float(self.values.get(key, default))

    def _path(self, key: str) -> Path | None:
        return Path(self.values[key]) if key in self.values else None


def parse(words: Sequence[str]) -> Arguments:
    """Read the words of a command line."""
    values: dict[str, str] = {}
    section = ""
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            section = f"{word}." if word in _SECTIONS else ""
        elif key in ("method", "init", "algorithm", "refresh", "id"):
            section = "" if key != "init" else section
            values[key] = value
        else:
            values[f"{section}{key}"] = value
    return Arguments(values)
