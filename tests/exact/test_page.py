"""The page's figures are there, and its table of cases is that of the cases."""

from __future__ import annotations

from .__main__ import DOCS, IMAGES

PAGE = DOCS / "explanations" / "exact-cases.md"


def test_figures_are_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    names = [path.name for path in IMAGES.glob("exact-*.png")]
    assert len(names) == 4
    assert all(f"../images/{name}" in text for name in names)
