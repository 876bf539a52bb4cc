"""Write the record's part of docs/guides/which-remedy.md: `python -m onebasin.studies.remedies.guide`.

The part between the two markers follows from `studies/results/remedies.json` alone: claims that hold on every data set
in every run, and those that do not. A test makes it again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from ..lab import Frame
from ..lab.record import RESULTS, stamp
from ..lab.study import conclude

RECORD = RESULTS / "remedies.json"
IN_ALL = "These statements hold on every data set, in every run:"
WHERE_DECIDED = (
    "These hold in every comparison that numbers decide; the others could not be judged:"
)
NOT_IN_ALL = "These do not hold everywhere:"
_WORDS = {"reproduces": IN_ALL, "reproduces in part": WHERE_DECIDED}


def stamped(page: str, record: Mapping[str, Any]) -> str:
    """Put what the record says into the page, between the markers.

    Raises
    ------
    ValueError
        If the page lacks one of them.
    """
    return stamp(page, said_of(record))


def said_of(record: Mapping[str, Any]) -> str:
    """Say what holds and what does not."""
    from . import STUDY

    frames = {name: Frame.from_json(kept) for name, kept in record["frames"].items()}
    found = conclude(STUDY, frames)
    runs = len(frames["cells"].levels("run"))
    said: dict[str, list[Any]] = {IN_ALL: [], WHERE_DECIDED: [], NOT_IN_ALL: []}
    for statement in found.statements:
        said[_WORDS.get(statement.verdict, NOT_IN_ALL)].append(statement)
    data = f"`{record['command']}`, seed {record['config']['seed']}, on {record['machine']}"
    parts = [
        f"Made by {data}; {runs} runs, with other data and other seeds.",
        *(part for words, some in said.items() if some for part in (words, *_listed(some))),
    ]
    return "\n\n".join(map(_wrapped, filter(None, parts)))


def _wrapped(text: str) -> str:
    """Break lines as pages do."""
    return "\n".join(map(_broken, text.split("\n")))


def _broken(line: str) -> str:
    inside = "  " if line.startswith("- ") else ""
    return fill(line, 100, subsequent_indent=inside, break_long_words=False, break_on_hyphens=False)


def _listed(statements: list[Any]) -> Iterator[str]:
    lines = [f"- **{s.label}.** {s.outcome[0].upper()}{s.outcome[1:]}." for s in statements]
    if lines:
        yield "\n".join(lines)


def main() -> None:
    """Rewrite the guide of this clone."""
    path = Path(__file__).resolve().parents[2] / "docs" / "guides" / "which-remedy.md"
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    path.write_text(stamped(path.read_text(encoding="utf-8"), record), encoding="utf-8")


if __name__ == "__main__":
    main()
