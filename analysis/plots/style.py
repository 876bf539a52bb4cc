"""Figures that a notebook shows by itself, and the colours, sizes, axes and panels that all share.

Colours are those of Okabe and Ito (2008), which the common kinds of colour blindness can tell apart, in an order in
which neighbours differ most. `analysis.page` replaces `INK`, `MUTED`, `GRID` and `ACCENT` by the page's own colours, so
text and lines use no other grey.

Matplotlib's own figures are shown by a notebook where pyplot made them. These are not pyplot's: nothing is left open,
and a cell that ends with one shows it once.
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
LONGEST = 22  # Characters of a name next to an axis or a point.
DASHED: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 3))}
"""The look of a limit."""
POINTS_TO_RASTERISE = 1500  # above this, markers are drawn as an image inside the SVG
RASTER_DPI = 170
_CHARACTERS_PER_INCH = 10.0  # in a bold title
PAPER = "#ffffff"
"""Ground of a figure that stands by itself: opaque, so that it can be read on a page of any colour."""
SCREEN_DPI, NOTEBOOK_DPI = 96, 120
"""Pixels an inch at which a notebook shows an image, and which the image has: a little more, for dense screens."""
MARGIN = 0.1
"""Inches around a figure that stands by itself."""
WIDE, HIGH = 0.0088, 0.0175
"""Inches that a character is wide, and a line high, for every point of the font size."""
COLOURS = 256
"""Colours of an image: half the bytes of one with all colours, and nobody sees a difference."""


class Margins(LayoutEngine):
    """Gives labels, titles and legends room by the number of their characters and lines.

    Matplotlib's own layouts measure each text several times, which would take half of a page's time.
    """

    _adjust_compatible, _colorbar_gridspec = True, False

    def __init__(self, around: float = 0.0) -> None:
        super().__init__()
        self.around = around  # Inches around all.

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
    """Inches that texts of a panel need on the left, on the right, below and above."""

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
    """A figure with an alternative text.

    Attributes
    ----------
    alt : str
        What the picture shows, in words and numbers.
    """

    alt: str = ""
    legend_room: float = 0.0  # Inches of the legend at the foot.
    head_room: float = 0.0  # Inches of the line at the head.

    def headed(self, text: str) -> Picture:
        """Write a line over all panels, if there is any; returns itself."""
        if text:
            self.head_room = 0.06 + HIGH * TEXT_SIZE
            below = 1 - 0.06 / self.get_figheight()
            self.text(0.012, below, literal(text), va="top", fontsize=TEXT_SIZE, color=MUTED)
        return self

    def on_paper(self, alt: str, head: str = "") -> Picture:
        """Give it an opaque ground, a margin, a line at its head and its text; returns itself."""
        self.headed(head)
        self.patch.set_facecolor(PAPER)
        self.patch.set_alpha(1.0)
        self.set_layout_engine(Margins(MARGIN))
        self.alt = alt
        return self

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save the figure as matplotlib does, but draw it once.

        Matplotlib draws a figure that has a layout engine twice, the first time only for the layout, and half of a
        page's drawing is spent on that. `Margins` need no drawing.
        """
        engine = self.get_layout_engine()
        if not isinstance(engine, Margins):
            super().savefig(*args, **options)
            return
        for _ in range(2):  # the ticks depend on the size, and the size on the ticks
            engine.execute(self)
        with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
            self.set_layout_engine(None)
        try:
            super().savefig(*args, **options)
        finally:
            self.set_layout_engine(engine)

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


def chain_colour(chain: int) -> str:
    """Return the colour of a chain; the palette repeats after eight."""
    return CHAIN_COLOURS[chain % len(CHAIN_COLOURS)]


def new_figure(width: float, height: float) -> Picture:
    """Make an empty figure of this size in inches, without a background."""
    return Picture(figsize=(width, height), layout=Margins(), facecolor="none", dpi=RASTER_DPI)


def literal(text: str) -> str:
    """Return a text of which matplotlib draws every character: dollar signs begin no formula, and nothing acts."""
    return shown(text, lines=True).replace("$", r"\$")


def shortened(name: str, longest: int) -> str:
    """Leave out the middle of a name that is too long; its end, where the indices are, stays."""
    if len(name) <= longest:
        return name
    head = (longest - 1) // 2
    return f"{name[:head]}…{name[len(name) - (longest - 1 - head) :]}"


def style_axes(axes: Axes, *, title: str = "", x_label: str = "", y_label: str = "") -> Axes:
    """Give axes the common look: open frame, light horizontal grid, few ticks, plain labels."""
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
    """Give an axis ("x" or "y") a logarithmic scale with at most so many labels, all plain numbers."""
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
    """Make a figure of panels alike, one per title, in rows of at most `columns`.

    Sizes, width first, are in inches: of a panel, and of what the figure has besides. Where all
    panels share their axes, only the left and the lowest ones are labelled.
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
    """Put one legend under all panels of a figure; bands are nested, the widest first."""
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
    """Give swatches of bands the colour that the band has over those around it, and pale lines a legible one."""
    clear = 1.0
    for handle in handles:
        alpha = handle.get_alpha() if isinstance(handle, Artist) else None  # not of containers
        if isinstance(handle, PolyCollection) and alpha is not None:
            clear *= 1 - alpha
            colour = np.asarray(handle.get_facecolor())[0, :3].tolist()
            yield Patch(color=colour, alpha=1 - clear, linewidth=0)
        elif isinstance(handle, Line2D) and (alpha or 1) < 0.5:
            yield Line2D([], [], color=handle.get_color(), linewidth=1.2, alpha=0.7)
        else:
            yield handle


MOST_NAMED = 16
"""Chains that a legend names at most; colours repeat by then."""


def add_chain_legend(figure: Figure, num_chains: int) -> None:
    """Say under a figure which colour is which chain; nothing if there is one chain."""
    if num_chains < 2:
        return
    shown = range(min(num_chains, MOST_NAMED))
    handles = [
        Line2D([], [], color=chain_colour(chain), marker="o", markersize=5, linestyle="none")
        for chain in shown
    ]
    labels = [f"chain {chain}" for chain in shown]
    if num_chains > MOST_NAMED:  # a legend of hundreds would leave no room for the panels
        labels[-1] += f" to {num_chains - 1}"
    add_legend(figure, handles, labels, columns=8)
