"""A recorded run made again: its settings are taken from its manifest, and its numbers compared with the new ones.

A manifest is the folder of a run, or a record of `studies/results`. Numbers are the same to the last bit on one machine
and one set of versions, but for those that a clock has made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from onebasin.base.errors import StudyError

from .frame import Frame, Frames
from .options import Options
from .study import Study
from .tables import Field, RowTable, yes_no

CLOCKED = ("wall_time", "seconds", "per_second")
"""Endings of the names of columns that a clock has made."""


@dataclass(frozen=True, eq=False)
class Manifest:
    """The facts that a run records about itself."""

    path: Path
    study: str
    config: Mapping[str, Any]  # Its settings.
    versions: Mapping[str, str]
    cells: Frame  # What was measured, a row a cell.


def read_manifest(path: Path, study: str) -> Manifest:
    """Read the manifest of a run's folder, or of a record; a `StudyError` if there is none, or of another study."""
    files = (path / "run.json", path / "findings.json") if path.is_dir() else (path,)
    try:
        said: dict[str, Any] = {}
        for file in files:
            said |= json.loads(file.read_text(encoding="utf-8"))
        manifest = Manifest(
            path,
            said["study"],
            said["config"],
            said["versions"],
            Frame.from_json(said["frames"]["cells"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise StudyError(
            f"`--rerun` is {path}, which is neither the folder of a finished run nor a record such as "
            "studies/results/boston.json: name one of these."
        ) from None
    if manifest.study != study:
        raise StudyError(
            f"`--rerun` is {path}, which is of the study {manifest.study}: name one of {study}."
        )
    return manifest


def settings_of(study: Study, manifest: Manifest, options: Options) -> Any:
    """Make a study's settings from a manifest; nothing else may say what they are."""
    if options != Options():
        raise StudyError(
            "`--rerun` came together with options that change what is run: leave these out, since the "
            "manifest says what they were."
        )
    try:
        kind = TypeAdapter(type(study.configure(options)))
        return kind.validate_json(
            json.dumps(manifest.config)
        )  # as JSON, in which a tuple is a list
    except ValidationError:
        raise StudyError(
            f"`--rerun` is {manifest.path}, whose settings this version of the study does not have: "
            "run it with the version that made it."
        ) from None


def held_against(manifest: Manifest, frames: Frames) -> Frame:
    """Hold the numbers of cells against those recorded, a row a cell that both have."""
    rows = []
    for row in frames["cells"]:
        recorded = manifest.cells.find(key=row["key"])
        if recorded is not None:
            names = [name for name in recorded if name in row and not name.endswith(CLOCKED)]
            other = [name for name in names if recorded[name] != row[name]]
            words = ", ".join(f"{name} {recorded[name]} to {row[name]}" for name in other[:3])
            numbers = {"compared": len(names), "other": len(other), "words": words}
            rows.append({"label": row["label"], **numbers, "same": not other})
    return Frame.of(rows)


AGAINST = RowTable(
    "The recorded numbers and those of this run, all but those that a clock has made",
    (
        Field("cell", "label"),
        Field("numbers", "compared"),
        Field("other than recorded", "other"),
        Field("such as", "words"),
        Field("the same", lambda row: yes_no(row["same"])),
    ),
    over="against",
)
