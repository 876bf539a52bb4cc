"""A figure that a notebook shows by itself, with its text for those who cannot see it.

Matplotlib's own figures are shown by a notebook where pyplot made them. These are not pyplot's: nothing is left open,
and a cell that ends with one shows it once.
"""

from __future__ import annotations

import io
from collections.abc import Container
from typing import Any

from matplotlib.figure import Figure

PAPER = "#ffffff"
"""Ground of a figure that stands by itself: opaque, so that it can be read on a page of any colour."""
SCREEN_DPI, NOTEBOOK_DPI = 96, 120
"""Pixels an inch at which a notebook shows an image, and which the image has: a little more, for dense screens."""
MARGIN = 0.08
"""Inches around panels, and so around all."""
COLOURS = 256
"""Of an image: half the bytes of one with all colours, and nobody sees a difference."""


class Picture(Figure):
    """A figure with an alternative text.

    Attributes
    ----------
    alt : str
        What the picture shows, in words and numbers.
    """

    alt: str = ""

    def on_paper(self, alt: str) -> Picture:
        """Give it an opaque ground, a margin and its text, for a place that knows neither; returns itself."""
        self.patch.set_facecolor(PAPER)
        self.patch.set_alpha(1.0)
        self.set_layout_engine("constrained", w_pad=MARGIN, h_pad=MARGIN)
        self.alt = alt
        return self

    def png(self, *, dpi: float = NOTEBOOK_DPI) -> bytes:
        """Return the figure as an image file with few colours, which is small."""
        from PIL import Image  # here: Matplotlib brings it along, and only images need it

        buffer, small = io.BytesIO(), io.BytesIO()
        self.savefig(buffer, format="png", dpi=dpi, facecolor=self.get_facecolor())
        image: Image.Image = Image.open(buffer)
        if image.getchannel("A").getextrema() == (255, 255):  # opaque throughout
            image = image.convert("RGB").quantize(
                COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
            )
        image.save(small, format="png", optimize=True)
        return small.getvalue()

    def _ipython_display_(self) -> None:
        # As `_repr_mimebundle_`, which gives way to the large image of a notebook that has loaded pyplot.
        from IPython.display import display

        shown, about = self._repr_mimebundle_()
        display(shown, metadata=about, raw=True)

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give a notebook the image, its size on the screen, and its text."""
        width, height = (round(SCREEN_DPI * side) for side in self.get_size_inches())
        text = f"<figure: {self.alt}>" if self.alt else repr(self)
        shown: dict[str, Any] = {"width": width, "height": height}
        if self.alt:
            shown["alt"] = self.alt
        return {"image/png": self.png(), "text/plain": text}, {"image/png": shown}
