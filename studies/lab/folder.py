"""A run is a folder: `run.json`, a posterior file per cell (`lab.cell_files`), the findings and the report.

Everything is written as it goes, each file whole or not at all, so that a run that was killed at any moment goes on to
the result that it would have had.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from onebasin.base import run_log
from onebasin.base.errors import Interrupted, InUse, StudyError, WriteError
from onebasin.base.files.leftovers import sweep
from onebasin.base.files.locks import locked
from onebasin.base.files.makers import Maker
from onebasin.base.files.seal import Seal, examine_json
from onebasin.base.notices import notice
from onebasin.inference.contracts.method import as_dict

from .cell_files import CellFiles, read_json, say_damaged, write_sealed


class Run:
    """A run's folder, and what its `run.json` says; as a context it records how the run ended."""

    def __init__(self, path: Path, record: dict[str, Any], *, resume: bool) -> None:
        self.path = path
        self.record = record
        self._resume = resume
        self._held = ExitStack()

    @property
    def report_path(self) -> Path:
        """The page."""
        return self.path / "report.html"

    @property
    def findings_path(self) -> Path:
        """The findings, as JSON."""
        return self.path / "findings.json"

    @property
    def log_path(self) -> Path:
        """The log, which tells when the run did what."""
        return self.path / run_log.NAME

    @property
    def files(self) -> CellFiles:
        """The files of its cells."""
        return CellFiles(self.path / "posteriors", self._resume)

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
