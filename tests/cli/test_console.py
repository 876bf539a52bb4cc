"""What a terminal is sent: names are shown and never obeyed; no line breaks a number, a word or a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from onebasin.base.files.netcdf import write_tree
from onebasin.base.table import Column, Table, TableCell
from onebasin.base.text import shown
from onebasin.cli import console

NAMES = ("\x1b[31mred", "[bold]b[red]", "[link=x]l", "a\rb", "c\nd", "e\u202ef", "$x$ $\\bad{$")


@pytest.fixture
def hostile(here: Path) -> Path:
    """A posterior whose variables, target and versions have such names."""
    return written(here / "\x1b[1m[bold]run.nc", NAMES)


def written(path: Path, names: tuple[str, ...]) -> Path:
    """Write that posterior."""
    rng = np.random.default_rng(1)
    draws = {name: (("chain", "draw"), rng.normal(size=(4, 100))) for name in names}
    stats = {
        "diverging": (("chain", "draw"), np.zeros((4, 100), bool)),
        "energy": (("chain", "draw"), rng.normal(size=(4, 100))),
        "lp": (("chain", "draw"), rng.normal(size=(4, 100))),
    }
    tree = xr.DataTree.from_dict(
        {"posterior": xr.Dataset(draws), "sample_stats": xr.Dataset(stats)}
    )
    marked = "\x1b]0;title\x07[red]m\u202e$a$"
    tree.attrs |= {"target": marked, "method": marked, "engine": marked, "machine": marked}
    return write_tree(tree, path)


def test_tables_show_names_and_obey_nothing(onebasin, hostile):
    answer = onebasin("diagnose", hostile)
    for text in (answer.out, answer.err):
        assert shown(text, lines=True) == text
    for name in NAMES:
        assert shown(name) in answer.out


def test_errors_show_names_and_obey_nothing(onebasin, here, hostile):
    for words in (
        ("diagnose", "\x1b[31mabsent\nonebasin: [bold]fine.nc"),
        ("diagnose", hostile, "--var", "\x1b[31m\r\u202e"),
        ("diagnose", hostile, "--\x1b[31m"),
        ("sample", "\x1b[31m\r.stan", "--out", "x.nc"),
    ):
        answer = onebasin(*words)
        assert answer.code in (1, 2)
        assert shown(answer.err, lines=True) == answer.err
        assert answer.err.count("\n") == 1
        assert "[bold]fine" in answer.err or "fine" not in answer.err


@pytest.mark.full
def test_a_report_takes_such_names(onebasin, hostile):
    few = written(hostile.with_name("[red]few.nc"), NAMES[::3])  # a page takes long
    answer = onebasin("report", few, "--out", "page.html")
    assert answer.code == 0, answer.err
    assert shown(answer.err, lines=True) == answer.err
    page = Path("page.html").read_text(encoding="utf-8")
    assert shown(page, lines=True) == page
    assert "$x$ $\\bad{$" in page


def cells(row: int) -> list[TableCell]:
    numbers = [-1234.5678 * (row + i + 1) for i in range(9)]
    return [TableCell(x, "bad", f"theta[{i}, {row}]") for i, x in enumerate(numbers)]


WIDE = Table(
    ("posterior", *(Column(f"column {i}", decimals=4, unit="of its own unit") for i in range(9))),
    tuple((TableCell(f"run-{row}", note="stan nuts 4 × 1000"), *cells(row)) for row in range(3)),
    "a wide one",
)


@pytest.fixture
def rendered(capfd, monkeypatch):
    """What a table or a sentence looks like at a width."""

    def render(write, *what, width: int | None = 80) -> list[str]:
        if width is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(width))
        capfd.readouterr()
        write(*what)
        return capfd.readouterr().out.splitlines()

    return render


@pytest.mark.parametrize("width", [40, 80, None])
def test_a_table_keeps_to_its_width_and_breaks_nothing(rendered, width):
    lines = rendered(console.write_table, WIDE, width=width)
    assert max(map(len, lines)) <= (width or 80)
    for row in range(3):
        for i, cell in enumerate(cells(row)):
            assert any(cell.note in line for line in lines), cell.note
            number = f"{cell.value:.4f}"  # which can be pasted
            assert any(f"{number} ✗" in line for line in lines), (number, i)


def test_a_sentence_is_wrapped_between_words_and_whole_where_no_width_is_known(rendered):
    sentence = (
        "R-hat of `theta[12, 3]` is 1 024.5 at " + "a long way from anything that converges " * 4
    )
    lines = rendered(console.write_remark, sentence, "bad")
    assert max(map(len, lines)) <= 80
    assert len(lines) > 1
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == "✗ " + sentence.replace("`", "").strip()
    assert len(rendered(console.write_remark, sentence, "bad", width=None)) == 1
