"""Cards: one description of an object, shown as text and as HTML, with nothing obeyed that a text holds."""

import dataclasses

from onebasin.base.card import Card, Fact, FactList, Words, measured, number
from onebasin.base.showing import Shown
from onebasin.base.table import Table

from ..cards import check_page
from ..each import each

CARD = Card(
    "Usable",
    (
        Words("You may use `mu[0]`: " + "it is good " * 20),
        FactList((Fact("labels", "None switch.", "good"), Fact("sampler", "It failed.", "bad"))),
        Table(
            ("", "mean", "sd"), (("`mu[0]`", "1", "0.5"), ("`sigma`", "12.5", "3")), "parameters"
        ),
        Words("A remark.", name="beside", small=True, flag="warn"),
    ),
    "good",
)


@dataclasses.dataclass(frozen=True, repr=False)
class Own(Shown):
    name: str

    def _card(self):
        return Card(
            self.name, (Words(self.name), FactList.of((self.name, self.name), ("none", "")))
        )


def test_text_is_wrapped_with_its_columns_in_line():
    lines = CARD.text().splitlines()
    assert lines[0] == "✓ Usable"
    assert max(map(len, lines)) <= 88
    assert "  ✓ labels   None switch." in lines
    assert "  ✗ sampler  It failed." in lines
    at = lines.index("parameters:")
    assert lines[at + 1 : at + 4] == [
        "         mean   sd",
        "  mu[0]     1  0.5",
        "  sigma  12.5    3",
    ]
    assert lines[-1] == "beside: A remark."


def test_html_is_small_and_marks_what_is_judged():
    class Marked(Shown):
        def _card(self):
            return CARD

    page = Marked()._repr_html_()
    check_page(page)
    assert page.index("Usable") < page.index("You may use") < page.index("<caption>")
    assert "<code>mu[0]</code>" in page
    left = (
        ' style="text-align:left"'  # inline: of a notebook that is not trusted nothing else is kept
    )
    assert f'<td class="bad"{left}>✗</td><th{left}>sampler</th>' in page
    assert '<p class="warn"><small><b>beside</b> A remark.</small></p>' in page


def test_a_name_is_shown_and_not_obeyed():
    bad = "</p><script>alert(1)</script>\x1b[31m\n`<b>`&amp;"
    own = Own(bad)
    page = own._repr_html_()
    check_page(page)
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert "<code>&lt;b&gt;</code>&amp;amp;" in page
    assert "\x1b" not in repr(own)
    assert "\\x1b[31m\\n" in repr(own)


def test_pages_follow_the_theme_that_a_parent_says():
    page = Own("x")._repr_html_()
    for theme in ("[data-jp-theme-light=false]", "[data-theme=dark]", ".vscode-dark"):
        assert theme in page


def test_facts_without_text_are_left_out():
    assert FactList.of(("a", ""), ("b", "c")).rows == (Fact("b", "c"),)


@each(
    ("value", "text"),
    [
        (float("nan"), "–"),
        (1.23456, "1.23"),
        (3.0, "3"),
        (12345.6, "12,346"),
        (1e-9, "1e-09"),
        (float("inf"), "inf"),
        (1e20, "1e+20"),
    ],
)
def test_numbers_have_few_digits(value, text):
    assert number(value) == text


@each(
    ("value", "error", "text"),
    [
        (-35.2149, 0.0613, "-35.215 ± 0.061 nats"),
        (-1234.56, 12.0, "-1,235 ± 12 nats"),
        (2.0, 0.0, "2.00 ± 0.00 nats"),
        (2.25, float("nan"), "2.25 nats"),
        (float("nan"), 1.0, "– nats"),
    ],
)
def test_a_measurement_has_as_many_digits_as_its_error(value, error, text):
    assert measured(value, error) == text
