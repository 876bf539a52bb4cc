"""The tables of cmdstanpy's keywords name every keyword of the installed cmdstanpy, and keywords that onebasin has.

A row of the first table, "Every method", stands for that keyword in all methods that have no row of their own for it.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import cmdstanpy
import pytest

import onebasin as ob

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "from-cmdstanpy.md"
OURS = {"sample": ob.nuts, "optimize": ob.optimize, "variational": ob.advi}
OURS |= {"pathfinder": ob.pathfinder, "laplace_sample": ob.laplace}


def tables() -> dict[str, dict[str, str]]:
    """Return the rows of each table, keyword to text, by the method's name."""
    found: dict[str, dict[str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## (?:`CmdStanModel\.?(\w*)`|Every method)", line):
            name = heading.group(1)
            rows = found.setdefault("every" if name is None else name or "__init__", {})
        elif row := re.fullmatch(r"\| (`\w+`(?:, `\w+`)*) \| (.+) \|", line):
            for keyword in re.findall(r"\w+", row.group(1)):
                assert keyword not in rows, f"{keyword} stands twice"
                rows[keyword] = row.group(2)
    return found


@pytest.mark.parametrize("method", ["__init__", *OURS, "generate_quantities"])
def test_every_keyword_has_its_row(method: str) -> None:
    there = set(inspect.signature(getattr(cmdstanpy.CmdStanModel, method)).parameters) - {"self"}
    every = set() if method == "__init__" else set(tables()["every"])
    assert set(tables()[method]) == there - (every - set(tables()[method]))


def test_keywords_of_every_method_have_no_second_row() -> None:
    assert {name for method in OURS for name in tables()[method]}.isdisjoint(tables()["every"])


@pytest.mark.parametrize("method", OURS)
def test_the_equivalents_exist(method: str) -> None:
    known = {*inspect.signature(OURS[method]).parameters, "data"}
    there = inspect.signature(getattr(cmdstanpy.CmdStanModel, method)).parameters
    every = {name: text for name, text in tables()["every"].items() if name in there}
    for keyword, text in (every | tables()[method]).items():
        if text.startswith("`") and (name := re.match(r"`(\w+)[`=]", text)):
            assert name.group(1) in known, f"{keyword}: {name.group(1)}"
        assert text.startswith(("`", "no")), f"{keyword} has neither an equivalent nor a reason"
