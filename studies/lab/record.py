"""The recorded result of a study: `studies/results/NAME.md` and its JSON, stamped from a run.

The JSON holds the frames; tables, verdicts and sentences of the page follow from them, by `rewrite`.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from onebasin.models.storage.atomic import replacing

from .. import registry
from .folder import Run, write_json
from .frame import Frame
from .markdown import table_to_markdown
from .study import Findings, Study, conclude

RESULTS = Path(__file__).parents[1] / "results"


def write_record(
    name: str, run: Run, findings: Findings, *, size: str = "", folder: Path | None = None
) -> tuple[Path, Path]:
    """Write what a run found, with all that it takes to repeat it.

    Parameters
    ----------
    name : str
        Name of the study.
    run : Run
        The run.
    findings : Findings
        What it found.
    size : str
        Appended to the file's name, where the run was not of the default size.
    folder : Path, optional
        Where to write; where records are kept by default.

    Returns
    -------
    tuple of Path
        The Markdown file and the JSON file.
    """
    folder = folder or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{size}" if size else name
    page, numbers = folder / f"{stem}.md", folder / f"{stem}.json"
    made = {
        key: run.record[key] for key in ("config", "config_hash", "versions", "commit", "machine")
    }
    made |= {"command": command(run.record["command"]), "seconds": seconds(run)}
    write_json(numbers, {"study": name, **made, **findings.to_dict()})
    with replacing(page) as part:
        part.write_text(_page(name, stem, made, findings), encoding="utf-8")
    return page, numbers


def rewrite(study: Study, stem: str, numbers: dict[str, Any]) -> tuple[str, Findings]:
    """Make a record's page again from its JSON.

    Parameters
    ----------
    study : Study
        The study.
    stem : str
        The files' name without ending.
    numbers : dict
        The JSON.

    Returns
    -------
    tuple of str and Findings
        The Markdown, and what it says.
    """
    frames = {name: Frame.of(rows) for name, rows in numbers["frames"].items()}
    findings = conclude(study, frames)
    return _page(numbers["study"], stem, numbers, findings), findings


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


def seconds(run: Run) -> float:
    """Add up the wall times of the cells."""
    return sum(float(cell.get("seconds", 0.0)) for cell in run.record["cells"].values())


def _page(name: str, stem: str, made: dict[str, Any], findings: Findings) -> str:
    entry = registry.STUDIES[name]
    parts = [
        f"# {stem}: {entry.summary}",
        f"{entry.paper}. This page and `{stem}.json` beside it are written by `--record`.",
        "\n".join(f"- {sentence}" for sentence in findings.headline),
        *map(table_to_markdown, findings.tables),
        "## How it was made",
        _facts(made),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(made: dict[str, Any]) -> str:
    versions = ", ".join(f"{package} {number}" for package, number in made["versions"].items())
    config = ", ".join(f"{key} = {value}" for key, value in made["config"].items())
    facts = {
        "command": f"`{made['command']}`",
        "settings": config,
        "commit": made["commit"] or "unknown",
        "machine": made["machine"],
        "versions": versions,
        "time": f"{made['seconds']:.0f} s, all cells",
    }
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())
