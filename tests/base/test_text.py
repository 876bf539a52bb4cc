import json

import pytest

from onebasin.base.text import json_text, pasteable, shown

ACTING = {
    "\x1b[31mred": r"\x1b[31mred",
    "\x1b]8;;http://x\x07link": r"\x1b]8;;http://x\x07link",
    "over\rwritten": r"over\rwritten",
    "two\nlines": r"two\nlines",
    "\tb": r"\tb",
    "rtl\u202e": r"rtl\u202e",
    "\u2066iso\u2069": r"\u2066iso\u2069",
    "\udcff": r"\udcff",
    "\x00": r"\x00",
}


@pytest.mark.parametrize(("text", "escaped"), ACTING.items())
def test_what_acts_is_escaped(text, escaped):
    assert shown(text) == escaped
    assert shown(shown(text)) == escaped


@pytest.mark.parametrize(
    "text",
    ["", "W1[0,1]", "[bold]x[/bold]", r"C:\name", "übung 数据 θ₁ ✓ 👩\u200d🔬", "می\u200cخواهم"],
)
def test_what_shows_stays(text):
    assert shown(text) == text


def test_lines_may_stay():
    assert shown("a\n\x1bb\r\n", lines=True) == "a\n\\x1bb\\r\n"


def test_json_says_the_same_without_acting():
    value = {"θ\u202e": ["\x1b[2J\x7f\x9b", "数据", "\U000e0041", "a\nb"]}
    text = json_text(value)
    assert json.loads(text) == value
    assert "θ" in text
    assert "数据" in text
    assert shown(text, lines=True) == text


def test_numbers_can_be_pasted():
    said = "12,345 draws, −1.5·10¹⁵ and A[1,200]"
    assert pasteable(said) == "12345 draws, -1.5e+15 and A[1,200]"
