"""The files of a reference, read by h5py and as JSON; and what is wrong with them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np

COLUMNS = ("mean", "sd", "q5", "q25", "q50", "q75", "q95")


@dataclass(frozen=True)
class ReferenceFiles:
    """A folder of a reference."""

    folder: Path  # Where they are.
    name: str  # Of the reference.
    elsewhere: Path | None = None  # Where all draws may be, if not there.

    def path(self, part: str) -> Path:
        """One of them."""
        return self.folder / f"{self.name}.{part}"

    @cached_property
    def info(self) -> dict[str, Any]:
        """The reference's information file."""
        return dict(json.loads(self.path("info.json").read_text(encoding="utf-8")))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Its moments and quantiles."""
        return dict(json.loads(self.path("summary.json").read_text(encoding="utf-8")))

    def row(self, table: str, name: str) -> dict[str, float]:
        """One quantity's row of the summary."""
        values = self.summary[table][name]
        numbers = (float("nan") if value is None else float(value) for value in values)
        return dict(zip(self.summary["columns"], numbers, strict=True))

    @cached_property
    def full(self) -> Path | None:
        """The file of all draws with the recorded checksum; None where it is not to be had."""
        places = [self.folder, *([self.elsewhere] if self.elsewhere else [])]
        for place in places:
            path = place / f"{self.name}.full.nc"
            if path.is_file() and digest(path) == self.info["sha256"]["full.nc"]:
                return path
        return None

    def broken(self) -> list[str]:
        """Files that are missing or not what was written."""
        parts = map(self.path, ("info.json", "summary.json", "draws.nc"))
        if missing := [f"{path.name} is missing" for path in parts if not path.is_file()]:
            return missing
        try:
            sums = self.info["sha256"]
            _ = self.info["checks_made"], self.info["symmetry"], self.info["labelling"]
        except (ValueError, KeyError, UnicodeDecodeError) as error:
            return [
                f"{self.path('info.json').name} cannot be read ({type(error).__name__}: {error})"
            ]
        return [
            f"{path.name} is not what was written: its checksum differs"
            for part in ("summary.json", "draws.nc", "full.nc")
            if (path := self.path(part)).is_file() and digest(path) != sums[part]
        ]


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path, group: str) -> dict[str, np.ndarray]:
    """Variables (chain, draw, *event) of a group."""
    with h5py.File(path) as file:
        found = file[group]
        return {
            name: np.asarray(found[name][()], float)
            for name in found
            if isinstance(found[name], h5py.Dataset) and found[name].ndim >= 2
        }


def entries(draws: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
    """Scalar entries (chain, draw) by the names of a summary's rows, in which they are counted from 0."""
    found = {}
    for name, value in draws.items():
        shape = value.shape[2:]
        columns = value.reshape(*value.shape[:2], -1)
        for i, index in enumerate(product(*map(range, shape))):
            label = f"{name}[{','.join(map(str, index))}]" if shape else name
            found[label] = columns[..., i]
    if all(name in found for name in names):
        return {name: found[name] for name in names}
    found = {}  # axes have their own labels: entries of a variable stand in their order
    for name, value in draws.items():
        own = [n for n in names if n == name or n.startswith(f"{name}[")]
        columns = value.reshape(*value.shape[:2], -1)
        if len(own) == columns.shape[2]:
            found |= {label: columns[..., i] for i, label in enumerate(own)}
    return found
