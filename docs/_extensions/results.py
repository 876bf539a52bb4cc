"""Build the pages of results from `studies/results`.

`docs/results/index.md` lists every record with its outcome. Each record is also a page. It starts with the outcome and
a row of marks, one per statement; tables and commands are collapsed. Pages in `docs/results` with a date in their name
are written by hand, and the index links them.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "studies" / "results"
INDEX = ROOT / "docs" / "results" / "index.md"

HEAD = """# Results

This page lists experiments of papers, repeated in both engines, followed by our own measurements. A statement
reproduces (✓) if it holds in every comparison. It does not reproduce (✗) if every comparison contradicts it. All other
statements are open (!): they hold in part, are unclear, or depend on the comparison. Every record states its command,
settings and machine. If its name ends with `quick`, the study was run at a size that takes a laptop minutes.
"""
OWN = """## Our own measurements

Each measurement was made once, on the date in its address, with the code of that day.
"""
MARKS = {"reproduces": ("yes", "✓"), "does not reproduce": ("no", "✗")}
"""The class and mark of each verdict; all other verdicts are open."""
POINTS = re.compile(r"(?:^- .*\n)+", re.MULTILINE)
TABLE = re.compile(r"^\*\*(.+)\*\*\n\n((?:\|.*\n)+)", re.MULTILINE)
MADE = re.compile(r"^## (How it was made)\n\n((?:- .*\n)+)", re.MULTILINE)


def _records() -> dict[str, dict]:
    files = sorted(RECORDS.glob("*.json"), key=lambda file: file.stem)
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def _heading(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def _title(name: str) -> str:
    """Return the title of a record's page without the name of the study."""
    title = _heading(RECORDS / f"{name}.md").partition(": ")[2]
    return title[:1].upper() + title[1:]


def _said(name: str) -> list[str]:
    """Return the list of points at the start of a record's page."""
    page = (RECORDS / f"{name}.md").read_text(encoding="utf-8")
    found = POINTS.search(page)
    return [] if found is None else [line[2:] for line in found[0].splitlines()]


def _outcomes(name: str) -> str:
    """Return the sentence that counts verdicts, if there is one, and the first other sentence."""
    counted, others = _parted(_said(name))
    return " ".join([*counted[:1], *others[:1]])


def _parted(sentences: list[str]) -> tuple[list[str], list[str]]:
    """Separate the sentences that count verdicts from the others."""
    counted = [
        sentence for sentence in sentences if re.match(r"Of \d+ (statements|claims)", sentence)
    ]
    return counted, [sentence for sentence in sentences if sentence not in counted]


def _marks(name: str, record: dict) -> str:
    """Return a mark for each statement that a record tested, with a label that appears on hover."""
    marks = ""
    for said in record.get("statements", ()):
        kind, mark = MARKS.get(said["verdict"], ("open", "!"))
        label = escape(f"{said['label']}: {said['verdict']}")
        marks += f'<span class="{kind}" title="{label}">{mark}</span>'
    label = escape(_outcomes(name))
    return f'<p class="marks" role="img" aria-label="{label}">{marks}</p>\n' if marks else ""


def _section(name: str, record: dict) -> str:
    return f"""## {name}

{_title(name)}. {_outcomes(name)} [All results](../../studies/results/{name}.md)

{_marks(name, record)}"""


def index() -> str:
    """Return the text of `docs/results/index.md`."""
    records = _records()
    dated = sorted(INDEX.parent.glob("2*-*.md"), reverse=True)
    tree = [f"{name} </studies/results/{name}>" for name in records]
    tree += [page.stem for page in dated]
    sections = "\n".join(_section(name, record) for name, record in records.items())
    own = "\n".join(f"- [{_heading(page)}]({page.name}), {page.stem[:10]}" for page in dated)
    entries = "\n".join(tree)
    return f"{HEAD}\n{sections}\n{OWN}\n{own}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def write_index(_app: Sphinx, _config: Config) -> None:
    """Write the index, unless its text is unchanged, so that Sphinx does not read it again."""
    INDEX.parent.mkdir(exist_ok=True)
    text = index()
    if not INDEX.exists() or INDEX.read_text(encoding="utf-8") != text:
        INDEX.write_text(text, encoding="utf-8")


def _folded(found: re.Match[str]) -> str:
    """Collapse a table under the first sentence of its caption."""
    title, _, rest = found[1].partition(". ")
    summary = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(title))
    rest = f"{rest}\n\n" if rest else ""
    return f"<details>\n<summary>{summary}</summary>\n\n{rest}{found[2]}\n</details>\n"


def fold(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Start a record with its outcome and a mark for each statement, and collapse the rest."""
    if not docname.startswith("studies/results/"):
        return
    record = json.loads((ROOT / f"{docname}.json").read_text(encoding="utf-8"))
    name = Path(docname).name
    counted, others = _parted(_said(name))
    points = "".join(f"- {sentence}\n" for sentence in (*counted[1:], *others[1:]))
    opening = f"{_outcomes(name)}\n\n{_marks(name, record)}\n"
    if points:
        opening += f"<details>\n<summary>More numbers</summary>\n\n{points}\n</details>\n"
    text = MADE.sub(_folded, TABLE.sub(_folded, source[0]))
    source[0] = POINTS.sub(lambda _: opening, text, count=1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the index before Sphinx looks for pages, and change records when it reads them."""
    app.connect("config-inited", write_index)
    app.connect("source-read", fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
