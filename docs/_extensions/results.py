"""Pages of results, made from `studies/results` whenever the site is built.

`docs/results/index.md` says of every record what was asked, what came out, and how and where it was made. The records
themselves are pages where they lie; what stands over their tables becomes headings, so that a reader finds them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "studies" / "results"
INDEX = ROOT / "docs" / "results" / "index.md"

HEAD = """# Results

What the studies recorded: experiments of papers, and our own, made again in both engines. A statement of a paper
reproduces if it holds in every comparison that was made of it, and in part if it holds in some while the others are
open or could not be judged; it is unclear if comparisons contradict each other or none decides. Every record names its
command, so that it can be made again; the numbers are read from `studies/results` when these pages
are built.

A name that ends with `quick` is the same study at the size that a laptop makes in minutes.
"""


def _records() -> dict[str, dict]:
    files = sorted(RECORDS.glob("*.json"), key=lambda file: file.stem)
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def _title(name: str) -> str:
    """What the record's page says of the study, without its name."""
    first = (RECORDS / f"{name}.md").read_text(encoding="utf-8").splitlines()[0]
    title = first.removeprefix("# ").partition(": ")[2]
    return title[:1].upper() + title[1:]


def _outcomes(record: dict) -> str:
    counts = Counter(statement["verdict"] for statement in record["statements"])
    said = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    return f"Of {counts.total()} statements: {said}."


def _how(record: dict) -> str:
    minutes = record["seconds"] / 60
    took = f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{record['seconds']:.0f} seconds"
    return (
        f"`{record['command']}`, seed {record['config']['seed']}, {took} on {record['machine']}; "
        f"onebasin {record['versions']['onebasin']}, commit `{record['commit']}`."
    )


def _section(name: str, record: dict) -> str:
    headline = "\n".join(f"- {line}" for line in record["headline"])
    link = f"[All tables and settings](../../studies/results/{name}.md)"
    return f"""## {name}

{_title(name)}. {_outcomes(record)}

{headline}

{link}. Made by {_how(record)}
"""


def index() -> str:
    """Return the text of `docs/results/index.md`."""
    records = _records()
    tree = "\n".join(f"{name} </studies/results/{name}>" for name in records)
    sections = "\n".join(_section(name, record) for name, record in records.items())
    return f"{HEAD}\n{sections}\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"


def write_index(_app: Sphinx, _config: Config) -> None:
    """Write the index; it is left as it is where nothing has changed, so that it is not read anew."""
    INDEX.parent.mkdir(exist_ok=True)
    text = index()
    if not INDEX.exists() or INDEX.read_text(encoding="utf-8") != text:
        INDEX.write_text(text, encoding="utf-8")


def give_headings(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Make headings of the bold lines over a record's tables."""
    if docname.startswith("studies/results/"):
        source[0] = re.sub(r"^\*\*(.+)\*\*$", r"## \1", source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the index before pages are found, and change the records as they are read."""
    app.connect("config-inited", write_index)
    app.connect("source-read", give_headings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
