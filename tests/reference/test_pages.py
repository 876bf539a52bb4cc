"""Pages that are held to what they tell of: the command line's, and what a posterior holds."""

from __future__ import annotations

import runpy

from onebasin.posteriors import schema

from .docstrings import ROOT

REFERENCE = ROOT / "docs" / "reference"


def test_the_command_lines_page_is_what_the_commands_say():
    made = runpy.run_path(str(REFERENCE / "commands.py"))["page"]()
    page = (REFERENCE / "command-line.md").read_text()
    assert page == made, "write it again: python docs/reference/commands.py"


def test_every_word_of_a_posterior_is_told():
    text = (REFERENCE / "posterior.md").read_text()
    words = {
        value for name, value in vars(schema).items() if name.isupper() and isinstance(value, str)
    }
    assert {word for word in words if f"`{word}" not in text} == set()
