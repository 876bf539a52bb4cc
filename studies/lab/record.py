"""The recorded numbers of a study, `studies/results/NAME.json`; people write the page next to it.

A run is made again from its manifest, the folder of a run or a record: numbers are the same to the last bit on one
machine and one set of versions, but for those that a clock has made.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from onebasin.base.errors import StudyError
from onebasin.base.files.atomic import replacing
from onebasin.base.files.seal import Seal, examine_json, seal_json
from onebasin.base.jsonable import json_safe, json_text
from onebasin.base.table import Table, TableCell

from .folder import Run, read_json
from .frame import Frame, Frames
from .study import Findings, Options, Study

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
        return kind.validate_json(json.dumps(manifest.config))  # in JSON a tuple is a list
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


def against_table(against: Frame) -> Table:
    """Tabulate what `held_against` found."""
    names = ("label", "compared", "other", "words")
    rows = tuple(
        (*(row[n] for n in names), TableCell(row["same"], "good" if row["same"] else "bad"))
        for row in against
    )
    return Table(
        ("cell", "numbers", "other than recorded", "such as", "the same"),
        rows,
        "The recorded numbers and those of this run, all but those that a clock has made",
    )


RESULTS = Path(__file__).parents[1] / "results"


def record_path(name: str, size: str = "") -> Path:
    """Name the record of a study; `size` where it is not of the default size."""
    return RESULTS / (f"{name}-{size}.json" if size else f"{name}.json")


def write_record(name: str, run: Run, findings: Findings, *, size: str = "") -> Path:
    """Write what a run of the study `name` found, with all that it takes to repeat it."""
    path = record_path(name, size)
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = record_text({"study": name, **made_by(run.record)}, findings.frames)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def made_by(run: dict[str, Any]) -> dict[str, Any]:
    """Say how a run was made, from its `run.json`: the part of a record that is not numbers."""
    kept = ("config", "config_hash", "versions", "commit", "machine")
    seconds = sum(float(cell.get("seconds", 0.0)) for cell in run["cells"].values())
    made = {key: run[key] for key in kept}
    return made | {"command": command(run["command"]), "seconds": seconds}


def read_record(numbers: Path) -> dict[str, Any]:
    """Read a record's JSON; a `StudyError` if its checksum is wrong."""
    made: dict[str, Any] = json.loads(numbers.read_text(encoding="utf-8"))
    if examine_json(made) is Seal.DAMAGED:
        raise StudyError(f"`numbers` is {numbers}, whose checksum is wrong: restore the file.")
    return made


def read_findings(name: str, study: Study, path: Path) -> Findings:
    """Read the numbers of a record, or of the folder of a finished run; a `StudyError` if there are none of `name`."""
    try:
        files = [path / "run.json", path / "findings.json"]
        made = read_json(files[0]) | read_json(files[1]) if path.is_dir() else read_record(path)
        if made["study"] != name:
            raise StudyError(
                f"`--out` is {path}, which is of the study {made['study']}: name one of {name}."
            )
        frames = {name: Frame.from_json(kept) for name, kept in made["frames"].items()}
    except (OSError, KeyError, json.JSONDecodeError):
        raise StudyError(
            f"`--show` finds no recorded numbers in {path}: run the study, or name a run's folder by --out."
        ) from None
    return Findings(study.tables, frames)


def record_text(made: dict[str, Any], frames: Frames) -> str:
    """Write a record as JSON: how it was made, and the frames with their columns' names once."""
    tables = {name: frame.table for name, frame in frames.items()}
    content = seal_json(json_safe({**made, "frames": tables}))
    kept = content.pop("frames")
    laid_out = ",\n".join(
        f'    {json_text(name)}: {{\n      "columns": {json_text(table["columns"], indent=None)},\n      "rows": ['
        + ",".join(f"\n        {json_text(row, indent=None)}" for row in table["rows"])
        + "]\n    }"
        for name, table in kept.items()
    )
    head = json_text(content).removesuffix("\n}")
    return f'{head},\n  "frames": {{\n{laid_out}\n  }}\n}}\n'


def command(words: list[str]) -> str:
    """Write what was typed, without what only says where things go."""
    kept, skip = [], False
    for word in words:
        if skip or word in ("--out", "--record"):
            skip = word == "--out" and not skip
            continue
        if not word.startswith("--out="):
            kept.append(word)
    return shlex.join(kept)
