"""Figures for notebooks, and their common colours, sizes, axes and panels.

The colours by Okabe and Ito (2008) remain distinct in common kinds of colour blindness. They are ordered such that
neighbours differ most. `analysis.page` replaces `INK`, `MUTED`, `GRID` and `ACCENT` by colours of the page, so text and
lines must use only these.

Figures are not registered with pyplot, so none stays open, and a notebook cell that ends with a figure shows it once.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Collection, Container, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from onebasin.base.table import format_number
from onebasin.base.text import shown

INK = "#2a2f36"
MUTED = "#6b7280"
GRID = "#d9dde3"
ACCENT = "#0072b2"
CHAIN_COLOURS = ACCENT, "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7ae6", "#7a8b00"
TEXT_SIZE = 9.0
TITLE_SIZE = 10.0
LONGEST = 22  # Maximum characters of names next to an axis or a point.
DASHED: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 3))}
"""Line style of limits."""
POINTS_TO_RASTERISE = 1500  # Number of markers above which they become an image.
RASTER_DPI = 170
_CHARACTERS_PER_INCH = 10.0  # Of a bold title.
PAPER = "#ffffff"
"""Opaque background of figures outside a page."""
SCREEN_DPI, NOTEBOOK_DPI = 96, 120
"""Pixels per inch at which notebooks show an image, and those of the image itself, which is finer for dense screens."""
MARGIN = 0.06
"""Margin around the panels of figures outside a page, in inches."""
GAP = 0.04
"""Space between columns of panels, as a share of the figure's width."""
COLOURS = 256
"""Number of colours in images. This halves their size without a visible difference."""


class Picture(Figure):
    """A figure with alternative text.

    Attributes
    ----------
    alt : str
        Alternative text, which describes the picture in words and numbers.
    """

    alt: str = ""

    def headed(self, text: str) -> Picture:
        """Write a line above all panels, unless it is empty, and return the figure."""
        if text:
            self.suptitle(literal(text), x=0.012, ha="left", fontsize=TEXT_SIZE, color=MUTED)
        return self

    def on_paper(self, alt: str, head: str = "") -> Picture:
        """Add an opaque background, a margin, a line at the top and alternative text, and return the figure."""
        self.headed(head)
        self.patch.set_facecolor(PAPER)
        self.patch.set_alpha(1.0)
        self.set_layout_engine("constrained", w_pad=MARGIN, h_pad=MARGIN, wspace=GAP)
        self.alt = alt
        return self

    def png(self, *, dpi: float = NOTEBOOK_DPI) -> bytes:
        """Return the figure as a small image file with few colours."""
        from PIL import Image  # Only images need it.

        buffer, small = io.BytesIO(), io.BytesIO()
        self.savefig(buffer, format="png", dpi=dpi, facecolor=self.get_facecolor())
        image: Image.Image = Image.open(buffer)
        if image.getchannel("A").getextrema() == (255, 255):  # It is opaque.
            image = image.convert("RGB").quantize(
                COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
            )
        image.save(small, format="png", optimize=True)
        return small.getvalue()

    def _ipython_display_(self) -> None:
        # If pyplot is loaded, IPython would show a large image instead of using `_repr_mimebundle_`.
        from IPython.display import display

        shown, about = self._repr_mimebundle_()
        display(shown, metadata=about, raw=True)

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the image with its screen size and alternative text, for a notebook."""
        width, height = (round(SCREEN_DPI * side) for side in self.get_size_inches())
        text = f"<figure: {self.alt}>" if self.alt else repr(self)
        shown: dict[str, Any] = {"width": width, "height": height}
        if self.alt:
            shown["alt"] = self.alt
        return {"image/png": self.png(), "text/plain": text}, {"image/png": shown}


def chain_colour(chain: int) -> str:
    """Return the colour of a chain. The palette repeats after eight colours."""
    return CHAIN_COLOURS[chain % len(CHAIN_COLOURS)]


def new_figure(width: float, height: float) -> Picture:
    """Create an empty, transparent figure with the given size in inches."""
    figure = Picture(figsize=(width, height), facecolor="none", dpi=RASTER_DPI)
    figure.set_layout_engine("constrained", wspace=GAP)
    return figure


def literal(text: str) -> str:
    """Escape text so that Matplotlib draws it literally, without formulas."""
    return shown(text, lines=True).replace("$", r"\$")


def shortened(name: str, longest: int) -> str:
    """Leave out the middle of a long name, because its end has the indices."""
    if len(name) <= longest:
        return name
    head = (longest - 1) // 2
    return f"{name[:head]}…{name[len(name) - (longest - 1 - head) :]}"


def style_axes(axes: Axes, *, title: str = "", x_label: str = "", y_label: str = "") -> Axes:
    """Give axes the common style: open frame, light horizontal grid, few ticks, plain labels."""
    axes.set_facecolor("none")
    title, x_label, y_label = map(literal, (title, x_label, y_label))
    axes.set_title(title, fontsize=TITLE_SIZE, color=INK, loc="left", fontweight="bold")
    axes.set_xlabel(x_label, fontsize=TEXT_SIZE, color=INK)
    axes.set_ylabel(y_label, fontsize=TEXT_SIZE, color=INK)
    axes.tick_params(colors=INK, labelsize=TEXT_SIZE - 1, length=3, width=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(INK)
        axes.spines[side].set_linewidth(0.6)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def log_scale(axes: Axes, which: str, *, labels: int = 5) -> None:
    """Give an axis ("x" or "y") a logarithmic scale with at most `labels` labels, as plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    few = high > 30 * low
    axis.set_major_locator(LogLocator(subs=(1.0,) if few else (1.0, 2.0, 5.0), numticks=labels))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value, digits=1)))
    axis.set_minor_formatter(NullFormatter())


def name_point(axes: Axes, name: str, x: float, y: float) -> None:
    """Write a short name next to a point."""
    axes.annotate(
        literal(name),
        (x, y),
        xytext=(5, 3),
        textcoords="offset points",
        fontsize=TEXT_SIZE - 1,
        color=INK,
    )


def new_panels(
    titles: Collection[str],
    *,
    columns: int,
    panel_size: tuple[float, float],
    margin: tuple[float, float],
    x_label: str,
    y_label: str,
    share_axes: bool = True,
) -> tuple[Picture, list[Axes]]:
    """Create a figure of equal panels, one per title, in rows of at most `columns`.

    `panel_size` and `margin` are widths and heights in inches. If panels share their axes, only the leftmost and lowest
    panels are labelled.
    """
    wide = max(1, min(columns, len(titles)))
    rows = -(-len(titles) // wide)
    figure = new_figure(panel_size[0] * wide + margin[0], panel_size[1] * rows + margin[1])
    grid = figure.subplots(rows, wide, squeeze=False, sharex=share_axes, sharey=share_axes).ravel()
    for place, (axes, title) in enumerate(zip(grid, titles, strict=False)):
        lowest = place + wide >= len(titles) or not share_axes
        leftmost = place % wide == 0 or not share_axes
        style_axes(
            axes,
            title=textwrap.fill(
                title, max(8, int(panel_size[0] * _CHARACTERS_PER_INCH)), break_on_hyphens=False
            ),
            x_label=x_label if lowest else "",
            y_label=y_label if leftmost else "",
        )
        axes.tick_params(labelbottom=lowest)
    for empty in grid[len(titles) :]:
        empty.set_visible(False)
    return figure, list(grid[: len(titles)])


def add_legend(
    figure: Figure, handles: Sequence, labels: Sequence[str], *, columns: int = 4
) -> None:
    """Add a legend under all panels of a figure. Nested bands must come widest first."""
    figure.legend(
        list(_as_seen(handles)),
        [literal(label) for label in labels],
        loc="outside lower center",
        ncols=min(columns, max(len(labels), 1)),
        borderaxespad=0.1,
        frameon=False,
        fontsize=TEXT_SIZE,
        labelcolor=INK,
    )


def _as_seen(handles: Sequence) -> Iterator[Any]:
    """Give swatches of nested bands the colour that they have in the plot, and make pale lines legible."""
    clear = 1.0
    for handle in handles:
        alpha = handle.get_alpha() if isinstance(handle, Artist) else None  # Containers have none.
        if isinstance(handle, PolyCollection) and alpha is not None:
            clear *= 1 - alpha
            colour = np.asarray(handle.get_facecolor())[0, :3].tolist()
            yield Patch(color=colour, alpha=1 - clear, linewidth=0)
        elif isinstance(handle, Line2D) and (alpha or 1) < 0.5:
            yield Line2D([], [], color=handle.get_color(), linewidth=1.2, alpha=0.7)
        else:
            yield handle


MOST_NAMED = 16
"""Largest number of chains in a legend."""


def add_chain_legend(figure: Figure, num_chains: int) -> None:
    """Add a legend of chains, unless there is only one chain."""
    if num_chains < 2:
        return
    shown = range(min(num_chains, MOST_NAMED))
    handles = [
        Line2D([], [], color=chain_colour(chain), marker="o", markersize=5, linestyle="none")
        for chain in shown
    ]
    labels = [f"chain {chain}" for chain in shown]
    if num_chains > MOST_NAMED:  # Hundreds of names would leave no space for the panels.
        labels[-1] += f" to {num_chains - 1}"
    add_legend(figure, handles, labels, columns=8)
