"""Every Python and shell block of README, CONTRIBUTING and docs runs, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .blocks import Block, blocks
from .running import ROOT, Page, PythonProcess, same

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


# Eight seconds and more each: with the slow tests.
LONG = {
    (ROOT / folder / name).with_suffix(".md")
    for folder, names in {
        "": "CONTRIBUTING docs/tutorial docs/reference/index",
        "docs/explanations": "collapse distillation mean-field microcanonical symmetrised-elbo",
        "docs/guides": (
            "any-density calibrating cluster cmdstan comparing-models diagnosing estimators "
            "factor-models fast-approximations files gpu initial-values label-switching "
            "long-runs modes own-numpyro-model own-stan-program own-symmetry "
            "predicted-noise predicting priors reports which-remedy"
        ),
    }.items()
    for name in names.split()
}


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
@pytest.mark.usefixtures("unchecked")  # as a reader has the commands
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if path in LONG else ()) for path in PAGES],
    ids=lambda path: str(path.relative_to(ROOT).with_suffix("")),
)
def test_blocks_of_the_page_run(path, tmp_path, monkeypatch, python, read):
    monkeypatch.chdir(tmp_path)
    Page(path, tmp_path, python, read).run()


def page_of(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_comments_say_what_the_test_runs_instead(tmp_path):
    text = "<!-- quick: draws=1000 => draws=10 -->\n<!-- setup: x = 1 -->\n```python\nf(draws=1000)\n```\n"
    (block,) = blocks(page_of(tmp_path, text))
    assert block.quick == "f(draws=10)\n"
    assert block.setup == [("python", "x = 1")]
    assert block.line == 4


def test_quick_comment_must_meet_its_block():
    block = Block("python", "f()\n", 1, (("quick", "draws=9 => draws=1"),))
    with pytest.raises(ValueError, match=r"`draws=9` of a quick comment is not there"):
        block.quick  # noqa: B018


def test_comment_above_no_block_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`not run: \.\.\.` is above no block"):
        blocks(page_of(tmp_path, "<!-- not run: needs a GPU -->\n\nA paragraph.\n"))


def run(text: str, folder: Path, python: PythonProcess, read: Callable[[], str]) -> None:
    Page(page_of(folder, text), folder, python, read).run()


def test_names_last_a_page_and_no_longer(tmp_path, python, read):
    run(
        "```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n```python\nprint(x)\n```\n"
        "<!-- output: exact -->\n```text\n1\n```\n",
        tmp_path,
        python,
        read,
    )
    with pytest.raises(pytest.fail.Exception, match=r"line 2[\s\S]*name 'x' is not defined"):
        run("```python\nx\n```\n", tmp_path, python, read)


def test_block_that_fails_or_warns_fails_the_page(tmp_path, python, read):
    with pytest.raises(pytest.fail.Exception, match="line 6, in <module>"):
        run("# Title\n\n```python\ny = 1\n\n1 / 0\n```\n", tmp_path, python, read)
    with pytest.raises(pytest.fail.Exception, match="UserWarning: look"):
        run('```python\nimport warnings\nwarnings.warn("look")\n```\n', tmp_path, python, read)
    with pytest.raises(AssertionError, match="ended with 2"):
        run("```sh\nonebasin diagnoze run.nc\n```\n", tmp_path, python, read)
    with pytest.raises(AssertionError, match="`cmdstan clean` changes the machine"):
        run("```sh\nonebasin cmdstan clean\n```\n", tmp_path, python, read)
    with pytest.raises(AssertionError, match="ended with 3"):
        run("```sh\nexit 3 | cat; exit 3\n```\n", tmp_path, python, read)
    run("<!-- exit: 2 -->\n```sh\nonebasin diagnoze run.nc\n```\n", tmp_path, python, read)


def test_output_that_a_page_shows_is_what_is_printed():
    same("one\ntwo 2\nthree\n", "one\ntwo 2\n...\n", 0.0, "page")
    with pytest.raises(AssertionError, match="does not show what is printed"):
        same("one\nthree\n", "one\ntwo\n...\n", 0.0, "page")
    same("R-hat: 1.04 of 4\n", "R-hat: 1.05 of 4", 0.02, "page")
    with pytest.raises(AssertionError, match=r"1\.04 printed, 1\.05 shown"):
        same("R-hat: 1.04\n", "R-hat: 1.05\n", 0.0, "page")
    with pytest.raises(AssertionError, match="does not show what is printed"):
        same("ESS: 1.04\n", "R-hat: 1.04\n", 0.1, "page")
