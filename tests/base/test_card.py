"""Cards: one description of an object, shown as text and as HTML, with nothing obeyed that a text holds."""

import dataclasses

from onebasin.base.card import Card, Fact, FactList, Shown, Words, measured
from onebasin.base.table import Table

from ..cards import check_page

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


def test_text_and_html_hold_what_the_card_says():
    class Marked(Shown):
        def _card(self):
            return CARD

    lines, page = CARD.text().splitlines(), Marked()._repr_html_()
    check_page(page)
    assert max(map(len, lines)) <= 88
    for text in (CARD.text(), page):
        for part in ("Usable", "None switch.", "It failed.", "mu[0]", "12.5", "A remark."):
            assert part in text


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


def test_a_measurement_has_as_many_digits_as_its_error():
    assert measured(-35.2149, 0.0613) == "-35.215 ± 0.061 nats"
    assert measured(2.25, float("nan")) == "2.25 nats"
