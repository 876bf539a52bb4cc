"""A run is a folder: `run.json`, a posterior file per cell, numbers, tables and figures.

Everything is written as it goes, each file whole or not at all, so that a run that was killed at any moment goes on to
the result that it would have had. Each cell's posterior, or why there is none, carries the fingerprint of all that
decides its draws.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from onebasin.base import run_log
from onebasin.base.errors import Interrupted, InUse, StudyError, WriteError
from onebasin.base.files.atomic import replacing
from onebasin.base.files.leftovers import sweep
from onebasin.base.files.locks import locked
from onebasin.base.files.makers import Maker
from onebasin.base.files.seal import Seal, examine, examine_json, seal_json
from onebasin.base.jsonable import json_safe, json_text
from onebasin.base.notices import notice
from onebasin.inference.contracts.method import as_dict
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

        attrs = self._taken(self.posterior_path(key), fingerprint)
        if attrs is None:
            return None
        (seconds,) = np.ravel(attrs.get(schema.WALL_TIME, 0.0))  # NetCDF makes an array of a number
        return float(seconds)

    def find_failure(self, key: str, fingerprint: str | None) -> str | None:
        """Return why a cell failed before, if it did; it would fail again."""
        failure = self._taken(self._failure_path(key), fingerprint)
        return None if failure is None else str(failure["message"])

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

    def _taken(self, path: Path, fingerprint: str | None) -> dict[str, Any] | None:
        """Read what a file says of itself, where it is of this cell and sound."""
        if not self.resume or fingerprint is None or not path.exists():
            return None
        if path.suffix == ".json":
            said = read_json(path)
            seal = examine_json(said)
        else:
            seal = examine(path)
            said = {} if seal is Seal.DAMAGED else _root_attributes(path)
        if said.get(FINGERPRINT, fingerprint) != fingerprint:
            return None
        if seal is not Seal.SEALED or not said:
            say_damaged(path)
            return None
        return said


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


class Run:
    """A run's folder, and what its `run.json` says; as a context it records how the run ended."""

    def __init__(self, path: Path, record: dict[str, Any], *, resume: bool) -> None:
        self.path = path
        self.record = record
        self.tables_path = path / "tables.md"
        self.findings_path = path / "findings.json"
        self.log_path = path / run_log.NAME  # It tells when the run did what.
        self.files = CellFiles(path / "posteriors", resume)
        self._held = ExitStack()

    def note(self, key: str, **what: Any) -> None:
        """Record what became of a cell."""
        self.record["cells"][key] = what
        self._write()

    def __enter__(self) -> Self:
        """Hold the folder, and record that the run is under way; `InUse` if somebody else holds it."""
        self._held.enter_context(locked(self.path, argument="--out"))
        try:
            sweep(self.files.folder)
            self._mark("running", process=str(Maker.own()))
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record how the run ended, and let go of the folder."""
        with self._held:
            if error is None:
                try:
                    self._mark("done")
                except KeyboardInterrupt:
                    self._mark("interrupted")
                    raise
            elif isinstance(error, Interrupted | KeyboardInterrupt):
                self._mark("interrupted")
            else:
                with suppress(WriteError):  # what broke the run off tells more
                    self._mark("failed", message=f"{type(error).__name__}: {error}")

    def settle(self) -> None:
        """Record an interruption that came between two steps of ``with``, which then calls no `__exit__`."""
        if self.record.get("status") == "running":
            with suppress(OSError):
                self._mark("interrupted")

    def _mark(self, status: str, **what: Any) -> None:
        for name in ("message", "process"):
            self.record.pop(name, None)
        self.record |= {"status": status, "written": _now(), **what}
        self._write()

    def _write(self) -> None:
        write_sealed(self.path / "run.json", self.record)


def open_run(
    path: Path, *, study: str, config: Any, command: list[str], resume: bool, force: bool
) -> Run:
    """Open a run's folder, new or begun before; `command` is what was typed.

    With `resume` the cells that are there are taken. A folder that holds something else, or results that would be
    replaced, is a `StudyError` unless `force` is true.
    """
    from onebasin.inference.runs.provenance import commit, machine, versions

    digest = config_hash(study, config)
    _correct_status(path)
    _check_folder(path, digest, resume=resume, force=force)
    (path / "posteriors").mkdir(parents=True, exist_ok=True)
    record = {
        "study": study,
        "command": command,
        "config": json.loads(canonical(config)),
        "config_hash": digest,
        "versions": versions(),
        "commit": commit(),
        "machine": machine(),
        "started": _now(),
        "cells": {},
    }
    return Run(path, record, resume=resume)


def default_folder(study: str, config: Any) -> Path:
    """Name the folder of a run by its settings."""
    return Path("runs") / f"{study}-{config_hash(study, config)[:10]}"


def config_hash(study: str, config: Any) -> str:
    """Hash a study's settings: a dataclass, or what a record has kept of one."""
    return hashlib.sha256(f"{study}\n{canonical(config)}".encode()).hexdigest()


def canonical(config: Any) -> str:
    """Write settings as JSON, one text for equal settings."""
    kept = config if isinstance(config, Mapping) else as_dict(config)
    return json.dumps(kept, sort_keys=True)


def _check_folder(path: Path, digest: str, *, resume: bool, force: bool) -> None:
    if path.exists() and not path.is_dir():
        raise StudyError(f"`--out` is {path}, which is a file: name a folder.")
    if force or not path.is_dir() or all(_is_beginning(entry) for entry in path.iterdir()):
        return
    if not (path / "run.json").exists():
        raise StudyError(
            f"`--out` is {path}, which holds files of something else: name another folder, or use "
            "it all the same with --force."
        )
    record = read_json(path / "run.json")
    damaged = examine_json(record) is Seal.DAMAGED or not record
    if record.get("config_hash") != digest:
        why = ", as far as its damaged run.json can be read" if damaged else ""
        raise StudyError(
            f"`--out` is {path}, which holds a run with other settings{why}: name another folder, or "
            "replace that run with --force."
        )
    if damaged:
        say_damaged(path / "run.json")
    if not resume:
        raise StudyError(
            f"`--out` is {path}, which holds this run already: --resume takes what is there, "
            "--force replaces it."
        )


def _correct_status(path: Path) -> None:
    """Write "interrupted" where `run.json` says "running" of a process that has ended: it was killed."""
    if not (path / "run.json").is_file():
        return
    with suppress(OSError, InUse), locked(path, argument="--out"):
        record = read_json(path / "run.json")
        maker = Maker.read(record.get("process"))
        if record.get("status") == "running" and maker is not None and maker.has_ended:
            del record["process"]
            write_sealed(path / "run.json", record | {"status": "interrupted"})
            notice(f"The run in {path} was killed; what it had finished is kept.")


def _is_beginning(entry: Path) -> bool:
    """Tell whether this is in a folder from before its `run.json`, where a run was killed as it began."""
    if entry.name == "posteriors" and entry.is_dir():
        return not any(entry.iterdir())
    return re.fullmatch(r"\.lock|\.run\.json\.onebasin-.*", entry.name) is not None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
