"""Every Python and shell block of README, CONTRIBUTING and docs runs, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from .running import ROOT, Page, PythonProcess

PAGES = [
    page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if not {"results", "_static"} & set(page.relative_to(ROOT).parts)
    and re.search(r"^```(python|sh)\b", page.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.fixture(scope="module")
def python() -> Iterator[PythonProcess]:
    """Start one interpreter for all pages; each has its own names and folder."""
    process = PythonProcess()
    yield process
    process.close()


@pytest.fixture
def read(capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Return what has been printed since the last time."""
    return lambda: "".join(capfd.readouterr())


@pytest.mark.stan
@pytest.mark.full
@pytest.mark.finds_symmetry
@pytest.mark.usefixtures("unchecked")  # as a reader has the commands
@pytest.mark.parametrize(
    "path", PAGES, ids=lambda path: str(path.relative_to(ROOT).with_suffix(""))
)
def test_blocks_of_the_page_run(path, tmp_path, monkeypatch, python, read):
    monkeypatch.chdir(tmp_path)
    Page(path, tmp_path, python, read).run()


def test_a_block_that_fails_warns_or_prints_something_else_fails_the_page(tmp_path, python, read):
    page = tmp_path / "page.md"

    def run(text: str) -> None:
        page.write_text(text)
        Page(page, tmp_path, python, read).run()

    prints = "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n<!-- output: exact -->\n```text\n{}\n```\n"
    run(prints.format(1))
    with pytest.raises(AssertionError):
        run(prints.format(2))
    part = "```python\nprint('before\\nx is  2,000 and', 3)\n```\n<!-- output: part -->\n```text\nx is {} and\n3\n```\n"
    run(part.format("2,010"))
    with pytest.raises(AssertionError, match="shows text that was not printed"):
        run(part.format("2,300"))
    for wrong in ("x", "import warnings\nwarnings.warn('look')"):
        with pytest.raises(pytest.fail.Exception, match="line 2"):
            run(f"```python\n{wrong}\n```\n")
    run("<!-- exit: 2 -->\n```sh\nonebasin diagnoze run.nc\n```\n")
    with pytest.raises(AssertionError, match="ended with 2"):
        run("```sh\nonebasin diagnoze run.nc\n```\n")
    with pytest.raises(ValueError, match="is not there"):
        run("<!-- quick: draws=9 => draws=1 -->\n```python\nf()\n```\n")
