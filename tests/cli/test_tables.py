"""Tables and sentences in the terminal's width: no line is longer, and none breaks a number, a word or a name."""

from __future__ import annotations

import pytest

from onebasin.base.table import Column, Table, TableCell
from onebasin.cli import console


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
