"""The files of a run's cells: a posterior each, or why there is none, and what is kept on the way to it.

Each is written whole or not at all, and carries the fingerprint of all that decides the cell's draws.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import InUse
from onebasin.base.files.atomic import replacing
from onebasin.base.files.locks import locked
from onebasin.base.files.seal import Seal, examine, examine_json, seal_json
from onebasin.base.jsonable import json_safe, json_text
from onebasin.base.notices import notice
from onebasin.posteriors import schema

if TYPE_CHECKING:
    import xarray as xr

FINGERPRINT = "cell"
"""Attribute of a posterior file that says which cell it is of."""
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class CellFiles:
    """The folder where a run's cells are kept."""

    folder: Path  # A folder that is there.
    resume: bool  # Whether cells that are there are taken.

    def posterior_path(self, key: str) -> Path:
        """Return the file of a cell's posterior."""
        return self.folder / f"{key}.nc"

    def checkpoint_path(self, key: str) -> Path:
        """Return the folder of a cell's chains, which is kept until its posterior is."""
        return self.folder / f"{key}.chains"

    @contextmanager
    def held(self, key: str, say: Callable[[str], None]) -> Iterator[None]:
        """Hold a cell while it is made; where another process makes it, say who, and wait for it.

        The folder has one run at a time, but a worker on another machine may still be at a cell of a run that was
        killed.
        """
        said = False
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(
                        locked(self.posterior_path(key), argument=key, alongside=True)
                    )
                    break
                except InUse as error:
                    if not said:
                        say(f"waits: {str(error).partition(';')[0]}")
                    said = True
                    sleep(_LOOK_SECONDS)
            yield

    def knows(self, key: str) -> bool:
        """Tell whether an earlier run has left a cell's posterior, or why there is none, that may be taken."""
        return self.resume and (
            self.posterior_path(key).exists() or self._failure_path(key).exists()
        )

    def find(self, key: str, fingerprint: str | None) -> float | None:
        """Seconds that a cell's posterior took, where it is there and may be taken; a notice tells of a damaged one."""
        import numpy as np

        path = self.posterior_path(key)
        if not self.resume or fingerprint is None or not path.exists():
            return None
        seal = examine(path)
        attrs = {} if seal is Seal.DAMAGED else _root_attributes(path)
        if attrs.get(FINGERPRINT, fingerprint) != fingerprint:
            return None
        if seal is not Seal.SEALED or not attrs:
            say_damaged(path)
            return None
        (seconds,) = np.ravel(attrs.get(schema.WALL_TIME, 0.0))  # NetCDF makes an array of a number
        return float(seconds)

    def find_failure(self, key: str, fingerprint: str | None) -> str | None:
        """Return why a cell failed before, if it did; it would fail again."""
        path = self._failure_path(key)
        if not self.resume or fingerprint is None or not path.exists():
            return None
        failure = read_json(path)
        if failure.get(FINGERPRINT, fingerprint) != fingerprint:
            return None
        if examine_json(failure) is not Seal.SEALED:
            say_damaged(path)
            return None
        return str(failure["message"])

    def keep(self, key: str, fingerprint: str | None, tree: xr.DataTree) -> float:
        """Write a cell's posterior, and return the seconds that it took.

        Without a fingerprint it is made again the next time.
        """
        from onebasin.base.files.netcdf import write_tree
        from onebasin.inference.runs.checkpoint import remove

        tree.attrs[FINGERPRINT] = fingerprint or ""
        write_tree(tree, self.posterior_path(key))
        self._failure_path(key).unlink(missing_ok=True)
        remove(self.checkpoint_path(key))
        return float(tree.attrs.get(schema.WALL_TIME, 0.0))

    def keep_failure(self, key: str, fingerprint: str | None, message: str) -> None:
        """Write why a cell has no posterior; without a fingerprint it is tried again the next time."""
        self.posterior_path(key).unlink(missing_ok=True)
        write_sealed(self._failure_path(key), {FINGERPRINT: fingerprint, "message": message})

    def keep_error(self, key: str, message: str, trace: str) -> None:
        """Write what broke off the making of a cell, and where in the code; the next time it is tried again."""
        what = {FINGERPRINT: None, "message": message, "trace": trace}
        write_sealed(self._failure_path(key), what)

    def _failure_path(self, key: str) -> Path:
        return self.folder / f"{key}.failed.json"


def write_json(path: Path, value: Any) -> None:
    """Write JSON to a file, whole or not at all; numbers that are not finite become null."""
    with replacing(path) as part:
        part.write_text(f"{json_text(value)}\n", encoding="utf-8")


def write_sealed(path: Path, value: dict[str, Any]) -> None:
    """Write an object as `write_json` does, with its seal."""
    write_json(path, seal_json(json_safe(value)))


def read_json(path: Path) -> dict[str, Any]:
    """Read an object; a damaged or missing file says nothing."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def say_damaged(path: Path) -> None:
    """Notify of a file that is made again."""
    notice(f"{path} is damaged (its checksum is missing or wrong): it is made again.")


def _root_attributes(path: Path) -> dict[str, Any]:
    """Attributes of a posterior file; none where it cannot be read."""
    import h5py

    try:
        with h5py.File(path) as file:
            return dict(file.attrs)
    except (OSError, RuntimeError, ValueError, KeyError):
        return {}
