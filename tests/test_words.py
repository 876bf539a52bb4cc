"""Docstrings open with a verb or a noun, and no docstring, message or comment holds a worn-out idiom."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_layers import MAY_IMPORT

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(MAY_IMPORT)
OPENINGS = re.compile(r"(?:What|How|Where|Whether)\b")
IDIOMS = re.compile(
    r"\b(?:h[eo]ld(?:s|ing)? .{0,20}against|beside|for want of|mend(?:s|ed|ing)?|anew|reckon|no proof"
    r"|of one's own|told of|gone on (?:with|from))\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"`[^`]*`")
RECORDED = {
    "an MSE it stands beside ": "studies/boston/page.py",
    "aligning shrinks the variance of HMC's draws, beside what": "studies/compact_representation/measures.py",
    "Held against NUTS, ADVI's": "studies/relu_teacher/page.py",
    "references to hold this one against": "truth/problems/programs.py",
    "mended": "analysis/discovery/candidate.py",
}
"""Sentences that records hold and names of JSON, which stay as they are, with the file of each."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of docstrings: of modules, classes, functions, and below assignments."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def texts(source: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string and comment; the words of an f-string one by one."""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and not text.isidentifier():  # no name, such as one in `__all__`
            yield node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def faults(source: str, file: str = "") -> list[str]:
    """Name every docstring and text of a file that breaks the rule, by its line."""
    tree = ast.parse(source)
    found = [
        f"{file}:{line}: docstring opens with {opening[0]}"
        for line, text in docstrings(tree)
        if (opening := OPENINGS.match(text.lstrip()))
    ]
    for line, text in texts(source, tree):
        if any(file == place and sentence in text for sentence, place in RECORDED.items()):
            continue
        words = " ".join(QUOTED.sub("``", text).split())
        found += [f"{file}:{line}: {idiom[0]!r}" for idiom in IDIOMS.finditer(words)]
    return found


def in_folder(folder: str) -> list[str]:
    """Name the faults below a folder."""
    return [
        fault
        for path in sorted((ROOT / folder).rglob("*.py"))
        for fault in faults(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_words_are_plain(package):
    assert not (found := in_folder(package)), "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""What a module does."""', 1),
        ('class A:\n    """The state."""\n    size: int\n    """How large it is."""', 1),
        ('def f():\n    """Whether it holds."""', 1),
        ('x = f"{y} is held, in a word, against {z}"', 0),
        ('x = "runs that are held against the\\n    reference, made anew"', 2),
        ("x = 1  # beside the other", 1),
        ('beside = ["beside"]\n"""The argument `beside` of a name."""', 0),
        ('"""Return what is there."""', 0),
    ],
)
def test_lint_finds_openings_and_idioms_but_no_names(source, count):
    assert len(faults(source)) == count
