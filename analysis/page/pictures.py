"""A figure as markup for one page: inline SVG. What would make it heavy becomes an image inside it.

The SVG loses its header, metadata and namespaces, so that it asks for nothing outside the page; its
ids get a prefix, because all figures share one document; and the ink, muted, grid and accent
colours of `analysis.plots.style` become the page's own, which change with light and dark, as do
white and the greys in which other libraries draw ground, text and rules.
"""

import base64
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onebasin.base.errors import OnebasinError
from onebasin.base.text import shown

from ..plots.style import ACCENT, GRID, INK, MUTED

MAX_SVG_BYTES = 250_000
_PAGE_COLOURS = {
    ACCENT: "var(--figure-accent)",
    INK: "var(--figure-ink)",
    MUTED: "var(--figure-muted)",
    GRID: "var(--figure-grid)",
    "#ffffff": "var(--figure-ground)",
}
_COLOUR = re.compile(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})\b")
_SPREAD = 15  # of red, green and blue, up to which a colour is a grey
_DROPPED = (
    re.compile(r"<metadata>.*?</metadata>", re.S),
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"<style.*?</style>", re.S),  # in a page it would style everything
)


def points_of(artist: Artist) -> int:
    """Count the points of a line or a scatter."""
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata(orig=False))
    if isinstance(artist, PathCollection):
        return len(np.atleast_2d(artist.get_offsets()))
    return 0


def embed(figure: Figure, *, prefix: str, alt: str, max_svg_bytes: int = MAX_SVG_BYTES) -> Markup:
    """Return a figure as an `svg` or an `img` element.

    Its ids get a `prefix` unlike that of any other figure on the page; `alt` stands for it where it cannot be seen.
    Above `max_svg_bytes` lines, points and areas are drawn as images inside it; above twice this, all is one image.
    """
    width = round(96 * float(figure.get_figwidth()))
    marks = [
        artist
        for axes in figure.axes
        for artist in (*axes.lines, *axes.collections, *axes.patches, *axes.images)
        if not artist.get_rasterized()
    ]
    # a line has numbers alone; of every marker there is an element
    sizes = (
        points_of(m) * (12 if getattr(m, "get_marker", str)() == "None" else 80) for m in marks
    )
    heavy = sum(sizes) > max_svg_bytes
    with _rasterised(marks if heavy else []):
        view_box, body = _for_page(_svg_text(figure), prefix)
    if len(body) > max_svg_bytes and marks and not heavy:
        with _rasterised(marks):
            view_box, body = _for_page(_svg_text(figure), prefix)
    if len(body) > 2 * max_svg_bytes:
        image = '<img class="raster" src="data:image/png;base64,{}" alt="{}" width="{}">'
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
        encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
        return Markup(image).format(encoded, shown(alt), width)
    head = '<svg role="img" aria-label="{}" style="--natural:{}px" viewBox="{}">{}</svg>'
    # Matplotlib escapes its text.
    return Markup(head).format(shown(alt), width, view_box, Markup(body))


@contextmanager
def _rasterised(marks: list[Artist]) -> Iterator[None]:
    """Have marks drawn as images."""
    for artist in marks:
        artist.set_rasterized(True)
    try:
        yield
    finally:
        for artist in marks:
            artist.set_rasterized(False)


def _svg_text(figure: Figure) -> str:
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def _for_page(svg: str, prefix: str) -> tuple[str, str]:
    """Return the view box and the body of an SVG document, fit to stand in a page."""
    whole = re.search(r'<svg[^>]*\sviewBox="([^"]+)"[^>]*>(.*)</svg>', svg, re.S)
    if whole is None:
        raise OnebasinError("matplotlib wrote an SVG without a view box: update matplotlib.")
    body = whole[2]
    for pattern in _DROPPED:
        body = pattern.sub("", body)
    for colour, variable in _PAGE_COLOURS.items():
        body = body.replace(colour, variable)
    body = _COLOUR.sub(_without_greys, body)
    # A hundredth of a point is enough; the paths are most of the page's weight.
    body = re.sub(r'\sd="[^"]+"', lambda hit: re.sub(r"(\.\d\d)\d+", r"\1", hit[0]), body)
    body = body.replace("xlink:href=", "href=").strip()
    # matplotlib salts ids at random, and a page should not change by itself; ids that nothing
    # refers to are dropped.
    used = dict.fromkeys(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', body))
    names = {a or b: f"{prefix}-{place}" for place, (a, b) in enumerate(used)}
    body = re.sub(
        r'\sid="([^"]+)"', lambda hit: f' id="{names[hit[1]]}"' if hit[1] in names else "", body
    )
    body = re.sub(r'href="#([^"]+)"', lambda hit: f'href="#{names[hit[1]]}"', body)
    body = re.sub(r"url\(#([^)]+)\)", lambda hit: f"url(#{names[hit[1]]})", body)
    return whole[1], body


def _without_greys(found: re.Match[str]) -> str:
    """The page's grey that is nearest to one of another library's; a colour as it is."""
    parts = [int(part, 16) for part in found.groups()]
    if max(parts) - min(parts) > _SPREAD:
        return found[0]
    lightness = sum(parts) / (3 * 255)
    name = "grid" if lightness > 0.8 else "muted" if lightness > 0.3 else "ink"
    return f"var(--figure-{name})"
