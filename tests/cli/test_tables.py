"""Tables and sentences at 80 columns: no line is longer, and none breaks a number, a word or a name."""

from __future__ import annotations

import pytest
from rich.text import Text

from onebasin.base.table import Column, Table, TableCell
from onebasin.cli import console
from onebasin.cli.tables import wrapped

from ..each import each


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


@each("width", [40, 60, 80, None, 160])
def test_a_table_keeps_to_its_width_and_breaks_nothing(rendered, width):
    lines = rendered(console.write_table, WIDE, width=width)
    assert max(map(len, lines)) <= (width or 80)
    for row in range(3):
        for i, cell in enumerate(cells(row)):
            assert any(cell.note in line for line in lines), cell.note
            number = f"{cell.value:.4f}"  # which can be pasted
            assert any(f"{number} ✗" in line for line in lines), (number, i)


def test_every_part_of_a_table_begins_with_its_first_column(rendered):
    lines = rendered(console.write_table, WIDE)
    rules = sum("───" in line for line in lines)
    assert rules > 1
    assert sum(line.split()[:1] == ["posterior"] for line in lines) == rules
    assert sum("a wide one" in line for line in lines) == 1


def test_a_path_stands_whole_in_a_table_too_narrow_for_it(rendered):
    path = "/root/" + "very-long-name/" * 8
    table = Table(("part", "found"), (("CmdStan", f"2.39.0 at {path} (assembled)"), ("a", "b c")))
    lines = rendered(console.write_table, table)
    assert any(path in line for line in lines)
    assert any("CmdStan" in line for line in lines)


def test_a_narrow_table_is_left_alone(rendered):
    table = Table(("parameter", "mean"), (("mu", 1.5), ("sigma", 0.25)))
    assert [line.split() for line in rendered(console.write_table, table) if line.strip()] == [
        ["parameter", "mean"],
        ["─" * 19],
        ["mu", "1.50"],
        ["sigma", "0.250"],
    ]


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


@each(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("theta[1, 2] here", 12, ["theta[1, 2]", "here"]),
        ("at /usr/share/a/very/long-path now", 12, ["at", "/usr/share/a/very/long-path", "now"]),
        ("a\nb c", 9, ["a", "b c"]),
        ("x" * 10, 4, ["x" * 10]),
        ("1\u202f234\u00a0✗ mu", 7, ["1\u202f234 ✗", "mu"]),
        ("", 5, [""]),
    ],
)
def test_lines_end_between_words(text, width, lines):
    assert wrapped(Text(text), width).plain.split("\n") == lines


def test_styles_survive_wrapping():
    text = Text.assemble(("red words ", "red"), "and plain ones")
    spans = [(span.start, span.end) for span in wrapped(text, 10).spans if span.style == "red"]
    assert spans == [(0, 9)]
