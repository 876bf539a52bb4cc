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
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import LayoutEngine
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
MARGIN = 0.1
"""Margin around figures outside a page, in inches."""
WIDE, HIGH = 0.0088, 0.0175
"""Width of a character and height of a line, in inches per point of font size."""
COLOURS = 256
"""Number of colours in images. This halves their size without a visible difference."""


class Margins(LayoutEngine):
    """A layout that reserves space for labels, titles and legends by counting characters and lines.

    Matplotlib's own layouts measure each text several times, which would take half of the time of making a page.
    """

    _adjust_compatible, _colorbar_gridspec = True, False

    def __init__(self, around: float = 0.0) -> None:
        super().__init__()
        self.around = around  # Margin around all panels, in inches.

    def execute(self, fig: Figure) -> None:
        """Place the panels of a figure."""
        found = [(axes, axes.get_subplotspec()) for axes in fig.axes if axes.get_visible()]
        panels = [(axes, spec) for axes, spec in found if spec is not None]
        if not panels:
            return
        specs = [spec for _, spec in panels]
        rooms = np.array([_rooms(axes) for axes, _ in panels])
        grid, places = (
            specs[0].get_gridspec(),
            np.array([(s.colspan[0], s.rowspan[0]) for s in specs]),
        )
        for axis, (first, last, length, count, names) in enumerate(
            (
                (0, 1, fig.get_figwidth(), grid.ncols, ("left", "right", "wspace")),
                (3, 2, fig.get_figheight(), grid.nrows, ("top", "bottom", "hspace")),
            )
        ):
            before, after = (
                np.array([rooms[places[:, axis] == k, side].max(initial=0.0) for k in range(count)])
                for side in (first, last)
            )
            start, end = before[0] + self.around, after[-1] + self.around
            if axis and isinstance(fig, Picture):
                start, end = start + fig.head_room, end + fig.legend_room
            gap = float((after[:-1] + before[1:]).max(initial=0.0))
            each = max((length - start - end - gap * (count - 1)) / count, 0.2)
            ends = (
                (start / length, 1 - end / length)
                if axis == 0
                else (1 - start / length, end / length)
            )
            fig.subplots_adjust(**dict(zip(names, (*ends, gap / each), strict=True)))


def _rooms(axes: Axes) -> tuple[float, float, float, float]:
    """Return the space in inches that the texts of a panel need on the left, on the right, below and above."""

    def widest(axis: Axis) -> float:
        texts = axis.get_major_formatter().format_ticks(list(axis.get_majorticklocs()))
        return max((4 if "$" in text else len(text) for text in texts), default=0) * WIDE * small

    def lines(text: str, size: float) -> float:
        return (text.count("\n") + 1) * HIGH * size + 0.04 if text else 0.0

    small = TEXT_SIZE - 1
    left = 0.06 + lines(axes.get_ylabel(), TEXT_SIZE)
    left += widest(axes.yaxis) + 0.06 if axes.yaxis.get_tick_params()["labelleft"] else 0.0
    below = 0.05 + lines(axes.get_xlabel(), TEXT_SIZE)
    right = 0.1
    if axes.xaxis.get_tick_params()["labelbottom"]:
        below += HIGH * small + 0.06
        half = widest(axes.xaxis) / 2
        left, right = max(left, half), max(right, half)
    titles = [lines(axes.get_title(loc=loc), TITLE_SIZE) for loc in ("left", "center", "right")]
    above = 0.1 + max(titles) + (0.05 if max(titles) else 0.0)
    if not max(titles) and axes.yaxis.get_major_formatter().get_offset():
        above += HIGH * small
    if (legend := axes.get_legend()) is not None and getattr(
        legend.get_bbox_to_anchor(), "_bbox", None
    ):
        texts = [*legend.get_texts(), legend.get_title()]
        right += 0.45 + max(len(text.get_text()) for text in texts) * WIDE * small
    return left, right, below, above


class Picture(Figure):
    """A figure with alternative text.

    Attributes
    ----------
    alt : str
        Alternative text, which describes the picture in words and numbers.
    """

    alt: str = ""
    legend_room: float = 0.0  # Height of the legend below the panels, in inches.
    head_room: float = 0.0  # Height of the line above the panels, in inches.

    def headed(self, text: str) -> Picture:
        """Write a line above all panels, unless it is empty, and return the figure."""
        if text:
            self.head_room = 0.06 + HIGH * TEXT_SIZE
            below = 1 - 0.06 / self.get_figheight()
            self.text(0.012, below, literal(text), va="top", fontsize=TEXT_SIZE, color=MUTED)
        return self

    def on_paper(self, alt: str, head: str = "") -> Picture:
        """Add an opaque background, a margin, a line at the top and alternative text, and return the figure."""
        self.headed(head)
        self.patch.set_facecolor(PAPER)
        self.patch.set_alpha(1.0)
        self.set_layout_engine(Margins(MARGIN))
        self.alt = alt
        return self

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save the figure like Matplotlib, but draw it only once.

        Matplotlib draws a figure with a layout engine twice, the first time only for the layout. This takes half of the
        drawing time of a page. `Margins` needs no drawing.
        """
        engine = self.get_layout_engine()
        if not isinstance(engine, Margins):
            super().savefig(*args, **options)
            return
        for _ in range(2):  # Ticks depend on the size, and the size on ticks.
            engine.execute(self)
        with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
            self.set_layout_engine(None)
        try:
            super().savefig(*args, **options)
        finally:
            self.set_layout_engine(engine)

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
    return Picture(figsize=(width, height), layout=Margins(), facecolor="none", dpi=RASTER_DPI)


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
    columns = min(columns, max(len(labels), 1))
    if isinstance(figure, Picture):
        figure.legend_room = 0.1 + -(-len(labels) // columns) * (HIGH + 0.007) * TEXT_SIZE
    figure.legend(
        list(_as_seen(handles)),
        [literal(label) for label in labels],
        loc="lower center",
        ncols=columns,
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
