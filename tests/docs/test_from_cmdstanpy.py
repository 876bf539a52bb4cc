"""The tables of cmdstanpy's keywords name every keyword of the installed cmdstanpy, and keywords that onebasin has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import cmdstanpy
import pytest

import onebasin as ob

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "from-cmdstanpy.md"
OURS = {
    "sample": ob.nuts,
    "optimize": ob.optimize,
    "variational": ob.advi,
    "pathfinder": ob.pathfinder,
    "laplace_sample": ob.laplace,
}


def tables() -> dict[str, dict[str, str]]:
    """Return the rows of each table, keyword to text, by the method's name."""
    found: dict[str, dict[str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## `CmdStanModel\.?(\w*)`", line):
            rows = found.setdefault(heading.group(1) or "__init__", {})
        elif row := re.fullmatch(r"\| `(\w+)` \| (.+) \|", line):
            assert row.group(1) not in rows, f"{row.group(1)} stands twice"
            rows[row.group(1)] = row.group(2)
    return found


@pytest.mark.parametrize("method", ["__init__", *OURS, "generate_quantities"])
def test_every_keyword_has_its_row(method: str) -> None:
    there = set(inspect.signature(getattr(cmdstanpy.CmdStanModel, method)).parameters) - {"self"}
    assert set(tables()[method]) == there


@pytest.mark.parametrize("method", OURS)
def test_the_equivalents_exist(method: str) -> None:
    known = {*inspect.signature(OURS[method]).parameters, "data"}
    for keyword, text in tables()[method].items():
        if text.startswith("`") and (name := re.match(r"`(\w+)[`=]", text)):
            assert name.group(1) in known, f"{keyword}: {name.group(1)}"
        assert text.startswith(("`", "no")), f"{keyword} has neither an equivalent nor a reason"
