"""Write the record's part of docs/guides/which-remedy.md: `python -m onebasin.studies.remedies.guide`.

The part between the two markers follows from `studies/results/remedies.json` alone: claims that hold on every data set
in every run, and those that do not. A test makes it again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import TextWrapper
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
    """Put what the record says into the page, between the markers; refuses a page that lacks one of them."""
    return stamp(page, said_of(record))


def said_of(record: Mapping[str, Any]) -> str:
    """Say what holds and what does not."""
    from . import STUDY

    frames = {name: Frame.from_json(kept) for name, kept in record["frames"].items()}
    found = conclude(STUDY, frames)
    runs = len(frames["cells"].levels("run"))
    said: dict[str, list[str]] = {IN_ALL: [], WHERE_DECIDED: [], NOT_IN_ALL: []}
    for s in found.statements:
        line = f"- **{s.label}.** {s.outcome[0].upper()}{s.outcome[1:]}."
        said[_WORDS.get(s.verdict, NOT_IN_ALL)].append(line)
    data = f"`{record['command']}`, seed {record['config']['seed']}, on {record['machine']}"
    parts = [f"Made by {data}; {runs} runs, with other data and other seeds."]
    for words, lines in said.items():
        parts += [words, "\n".join(lines)] if lines else []
    whole = TextWrapper(100, break_long_words=False, break_on_hyphens=False)
    item = TextWrapper(100, "", "  ", break_long_words=False, break_on_hyphens=False)
    lines = "\n\n".join(filter(None, parts)).split("\n")
    return "\n".join((item if line.startswith("- ") else whole).fill(line) for line in lines)


def main() -> None:
    """Rewrite the guide of this clone."""
    path = Path(__file__).resolve().parents[2] / "docs" / "guides" / "which-remedy.md"
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    path.write_text(stamped(path.read_text(encoding="utf-8"), record), encoding="utf-8")


if __name__ == "__main__":
    main()
