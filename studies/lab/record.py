"""The recorded result of a study: `studies/results/NAME.md` and its JSON, stamped from a run.

``python -m onebasin.studies.lab.record`` stamps all records again from their JSON, or those files that are named.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from onebasin.base.errors import ArgumentError, StudyError
from onebasin.base.files.atomic import replacing
from onebasin.base.files.seal import FIELD, Seal, examine_json, seal_json
from onebasin.base.jsonable import json_safe, json_text
from onebasin.base.table import table_to_markdown

from .. import registry
from .folder import Run
from .frame import Frame
from .study import Findings, Study, conclude, find

RESULTS = Path(__file__).parents[1] / "results"
BEGIN, END = "<!-- from the record: begins -->", "<!-- from the record: ends -->"
"""Around the part of a hand-written page that follows from a record alone."""


def write_record(name: str, run: Run, findings: Findings, *, size: str = "") -> tuple[Path, Path]:
    """Write what a run of the study `name` found, with all that it takes to repeat it: a Markdown and a JSON file.

    `size` is appended to the files' name, where the run was not of the default size.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{size}" if size else name
    page, numbers = RESULTS / f"{stem}.md", RESULTS / f"{stem}.json"
    made = made_by(run.record)
    _write(page, _page(name, stem, made, findings))
    _write(numbers, record_text({"study": name, **made}, findings))
    return page, numbers


def made_by(run: dict[str, Any]) -> dict[str, Any]:
    """Say how a run was made, from its `run.json`: the part of a record that is not numbers."""
    kept = ("config", "config_hash", "versions", "commit", "machine")
    seconds = sum(float(cell.get("seconds", 0.0)) for cell in run["cells"].values())
    made = {key: run[key] for key in kept}
    return made | {"command": command(run["command"]), "seconds": seconds}


def write_again(numbers: Path) -> None:
    """Write a record again, both files, from the numbers in its JSON and what is said of them now."""
    rewrite_record(numbers, read_record(numbers))


def read_record(numbers: Path) -> dict[str, Any]:
    """Read a record's JSON; a `StudyError` if its checksum is wrong."""
    made: dict[str, Any] = json.loads(numbers.read_text(encoding="utf-8"))
    if examine_json(made) is Seal.DAMAGED:
        raise StudyError(f"`numbers` is {numbers}, whose checksum is wrong: restore the file.")
    return made


def rewrite_record(numbers: Path, made: dict[str, Any]) -> None:
    """Write both files of a record from its JSON, and make the JSON's checksum again."""
    page, findings = rewrite(find(made["study"]), numbers.stem, made)
    kept = {name: value for name, value in made.items() if name != FIELD}
    _write(numbers, record_text(kept, findings))
    _write(numbers.with_suffix(".md"), page)


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
    return _page(numbers["study"], stem, numbers, findings), findings


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


def _write(path: Path, text: str) -> None:
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _page(name: str, stem: str, made: dict[str, Any], findings: Findings) -> str:
    entry = registry.STUDIES[name]
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
        write_again(numbers)


if __name__ == "__main__":
    main()
