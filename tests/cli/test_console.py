"""What a terminal is sent: names out of files are shown, and nothing in them is obeyed."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from onebasin.base.files.netcdf import write_tree
from onebasin.base.text import shown

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


def test_json_holds_names_and_obeys_nothing(onebasin, hostile):
    answer = onebasin("diagnose", hostile, "--json")
    assert shown(answer.out, lines=True) == answer.out
    assert {row["parameter"] for row in answer.json["parameters"]} == set(NAMES)


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
