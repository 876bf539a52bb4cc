"""The recorded result of a study: `studies/results/NAME.md` and its JSON, stamped from a run.

``python -m onebasin.studies.lab.record`` stamps all records again from their JSON, or those files that are named. A run
is made again from its manifest, the folder of a run or a record: numbers are the same to the last bit on one machine
and one set of versions, but for those that a clock has made.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from onebasin.base.errors import ArgumentError, StudyError
from onebasin.base.files.atomic import replacing
from onebasin.base.files.seal import FIELD, Seal, examine_json, seal_json
from onebasin.base.jsonable import json_safe, json_text
from onebasin.base.table import table_to_markdown

from .. import registry
from .folder import Run
from .frame import Frame, Frames
from .page import Field, RowTable, yes_no
from .study import Findings, Options, Study, conclude, find

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


RESULTS = Path(__file__).parents[1] / "results"
BEGIN, END = "<!-- from the record: begins -->", "<!-- from the record: ends -->"
"""Around the part of a hand-written page that follows from a record alone."""


def write_record(name: str, run: Run, findings: Findings, *, size: str = "") -> tuple[Path, Path]:
    """Write what a run of the study `name` found, with all that it takes to repeat it: a Markdown and a JSON file.

    `size` is appended to the files' name, where the run was not of the default size.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    numbers = RESULTS / (f"{name}-{size}.json" if size else f"{name}.json")
    return _write(numbers, {"study": name, **made_by(run.record)}, findings), numbers


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


def rewrite_record(numbers: Path, made: dict[str, Any]) -> None:
    """Write both files of a record from its JSON and what is said of it now, and make the checksum again."""
    _, findings = rewrite(find(made["study"]), numbers.stem, made)
    _write(numbers, {name: value for name, value in made.items() if name != FIELD}, findings)


def record_text(made: dict[str, Any], findings: Findings) -> str:
    """Write a record as JSON: how it was made, what it says, and the frames with their columns' names once."""
    tables = {name: frame.table for name, frame in findings.frames.items()}
    content = seal_json(json_safe({**made, **findings.to_dict(), "frames": tables}))
    frames = content.pop("frames")
    laid_out = ",\n".join(
        f'    {json_text(name)}: {{\n      "columns": {json_text(table["columns"], indent=None)},\n      "rows": ['
        + ",".join(f"\n        {json_text(row, indent=None)}" for row in table["rows"])
        + "]\n    }"
        for name, table in frames.items()
    )
    head = json_text(content).removesuffix("\n}")
    return f'{head},\n  "frames": {{\n{laid_out}\n  }}\n}}\n'


def rewrite(study: Study, stem: str, numbers: dict[str, Any]) -> tuple[str, Findings]:
    """Make a record's page, whose file's name is `stem`, again from its JSON; return it, and what it says."""
    frames = {name: Frame.from_json(kept) for name, kept in numbers["frames"].items()}
    findings = conclude(study, frames)
    return _page(stem, numbers, findings), findings


def stamp(page: str, said: str) -> str:
    """Put what a record says into a page, between the markers; refuses a page that lacks one of them."""
    before, began, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (began and ended):
        raise ArgumentError(
            f"`page` lacks {END if began else BEGIN}; it takes what the record says there."
        )
    return f"{before}{BEGIN}\n\n{said}\n\n{END}{after}"


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


def _write(numbers: Path, made: dict[str, Any], findings: Findings) -> Path:
    """Write both files of a record, and return the page's."""
    page = numbers.with_suffix(".md")
    texts = {page: _page(numbers.stem, made, findings), numbers: record_text(made, findings)}
    for path, text in texts.items():
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
    return page


def _page(stem: str, made: dict[str, Any], findings: Findings) -> str:
    entry = registry.STUDIES[made["study"]]
    parts = [
        f"# {stem}: {entry.summary}",
        f"{entry.paper}. This page and `{stem}.json` next to it are written by `--record`.",
        "\n".join(f"- {sentence}" for sentence in findings.headline),
        *map(table_to_markdown, findings.tables),
        "## How it was made",
        f"- command: `{made['command']}`\n"
        f"- settings: {', '.join(f'{key} = {value}' for key, value in made['config'].items())}\n"
        f"- commit: {made['commit'] or 'unknown'}\n"
        f"- machine: {made['machine']}\n"
        f"- versions: {', '.join(f'{name} {number}' for name, number in made['versions'].items())}\n"
        f"- time: {made['seconds']:.0f} s, all cells",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Stamp the records of this clone again, or those that are named."""
    for numbers in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(RESULTS.glob("*.json")):
        rewrite_record(numbers, read_record(numbers))


if __name__ == "__main__":
    main()
