"""The recorded result of a study: `studies/results/NAME.md` and its JSON, stamped from a run.

The JSON holds the frames; tables, verdicts and sentences of the page follow from them, by `rewrite`.
"""

import shlex
from pathlib import Path
from typing import Any

from onebasin.analysis.report.markdown import table_to_markdown
from onebasin.models.storage.atomic import replacing

from .. import registry
from .cell_files import write_sealed
from .folder import Run
from .frame import Frame
from .study import Findings, Study, conclude

RESULTS = Path(__file__).parents[1] / "results"


def write_record(name: str, run: Run, findings: Findings, *, size: str = "") -> tuple[Path, Path]:
    """Write what a run of the study `name` found, with all that it takes to repeat it: a Markdown and a JSON file.

    `size` is appended to the files' name, where the run was not of the default size.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{size}" if size else name
    page, numbers = RESULTS / f"{stem}.md", RESULTS / f"{stem}.json"
    kept = ("config", "config_hash", "versions", "commit", "machine")
    made = {key: run.record[key] for key in kept}
    seconds = sum(float(cell.get("seconds", 0.0)) for cell in run.record["cells"].values())
    made |= {"command": command(run.record["command"]), "seconds": seconds}
    write_sealed(numbers, {"study": name, **made, **findings.to_dict()})
    with replacing(page) as part:
        part.write_text(_page(name, stem, made, findings), encoding="utf-8")
    return page, numbers


def rewrite(study: Study, stem: str, numbers: dict[str, Any]) -> tuple[str, Findings]:
    """Make a record's page, whose file's name is `stem`, again from its JSON; return it, and what it says."""
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
    return "\n".join(
        (
            f"- command: `{made['command']}`",
            f"- settings: {', '.join(f'{key} = {value}' for key, value in made['config'].items())}",
            f"- commit: {made['commit'] or 'unknown'}",
            f"- machine: {made['machine']}",
            f"- versions: {', '.join(f'{name} {number}' for name, number in made['versions'].items())}",
            f"- time: {made['seconds']:.0f} s, all cells",
        )
    )
