"""ArviZ's own plots, as figures of ours: its drawing, our colours, sizes and legends.

Convention: what is drawn is a few scalar quantities, each a variable of its own whose name is its label, so that any
posterior's names and axes will do. ArviZ draws with pyplot: a figure is taken out of it at once, and Matplotlib's
settings are put back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from matplotlib.artist import Artist
from matplotlib.collections import Collection, PathCollection
from matplotlib.lines import Line2D

from onebasin.base.errors import ArgumentError
from onebasin.posteriors import schema

from .style import (
    CHAIN_COLOURS,
    INK,
    POINTS_TO_RASTERISE,
    RASTER_DPI,
    TEXT_SIZE,
    TITLE_SIZE,
    Picture,
    add_chain_legend,
    add_legend,
    literal,
    shortened,
)

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

Quantity = Float[np.ndarray, "chain draw"]
LONGEST_LABEL = 26
WIDTH = 7.6
LAST_DIGITS = 2.0**14
"""Units in the last place within which numbers lie that no histogram of 512 bins takes apart."""


def few(
    quantities: Mapping[str, Quantity],
    *,
    diverging: Bool[np.ndarray, "chain draw"] | None = None,
    longest: int = LONGEST_LABEL,
) -> xr.DataTree:
    """Put draws by name into a posterior of their own, under labels that fit; `diverging` marks those that diverged."""
    quantities = dict(_apart(name, values) for name, values in quantities.items())
    names = labels(quantities, longest=longest)
    groups = {schema.POSTERIOR: dataset_of({names[name]: v for name, v in quantities.items()})}
    if diverging is not None and diverging.any():
        groups[schema.SAMPLE_STATS] = dataset_of({schema.DIVERGING: diverging})
    return xr.DataTree.from_dict(groups)


def _apart(name: str, values: Quantity) -> tuple[str, Quantity]:
    """Subtract a constant, which the name says, from numbers that differ in their last digits alone."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = 0 < np.ptp(values) < LAST_DIGITS * np.spacing(np.abs(values).max())
    centre = float(f"{np.median(values):.12g}")
    return (f"{name} - {centre:.12g}", values - centre) if near else (name, values)


def dataset_of(
    variables: Mapping[str, np.ndarray], dims: Sequence[str] = schema.SAMPLE_DIMS
) -> xr.Dataset:
    """Put arrays of equal axes into a dataset, with the places along them as coordinates."""
    first = next(iter(variables.values()))
    coords = {dim: np.arange(size) for dim, size in zip(dims, first.shape, strict=True)}
    return xr.Dataset({name: (dims, values) for name, values in variables.items()}, coords=coords)


def labels(names: Mapping[str, Any], *, longest: int = LONGEST_LABEL) -> dict[str, str]:
    """Give every name a label of its own of at most so many characters, its middle left out where it is longer."""
    given: dict[str, str] = {}
    for name in names:
        label = shortened(name, longest)
        number = 2
        while label in given.values():
            label = f"{shortened(name, longest - 4)} ({number})"
            number += 1
        given[name] = label
    # A slash would be a path in a tree: the sign for a fraction looks the same.
    return {name: literal(label).replace("/", "\u2215") for name, label in given.items()}


def drawn(
    plot: Callable[..., PlotCollection],
    data: Any,
    *,
    height: float,
    width: float = WIDTH,
    chains: int = 0,
    legend: Sequence[str] = (),
    hidden: Sequence[str] = (),
    title: str = "",
    **options: Any,
) -> Picture:
    """Draw with one of ArviZ's plots, such as `arviz_plots.plot_rank`, in a figure of so many inches.

    The legend tells the colours of so many `chains`, or what the first colours stand for (`legend`). Marks that are
    `hidden` go by ArviZ's names; `options` are further arguments of the plot.
    """
    from matplotlib import pyplot  # here: a page without such figures does without pyplot

    size = {"figsize": (width, height), "layout": "constrained", "FigureClass": Picture}
    others = {*pyplot.get_fignums()}
    with _our_settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of densities that cannot be estimated, and the like
        try:
            collection = plot(data, backend="matplotlib", figure_kwargs=size, **options)
        except (ValueError, ArithmeticError) as error:
            for number in {*pyplot.get_fignums()} - others:
                pyplot.close(number)
            why = str(error).partition("\n")[0].rstrip(".")
            raise ArgumentError(
                f"`posterior` holds numbers that ArviZ cannot draw ({why}): subtract a constant, rescale, or leave "
                "the variable out by `var_names`."
            ) from error
        figure: Picture = collection.viz["figure"].item()
        pyplot.close(figure)
    for name in hidden:
        unwanted = collection.viz.children.get(name)
        for variable in unwanted.data_vars.values() if unwanted is not None else ():
            for mark in variable.values.ravel():
                if isinstance(mark, Artist):
                    mark.set_visible(False)
    figure.patch.set_alpha(0.0)
    for axes in figure.axes:
        # ArviZ scales sizes by itself: these are ours. Heavy marks become images.
        axes.set_facecolor("none")
        axes.tick_params(colors=INK, labelsize=TEXT_SIZE - 1, length=3, width=0.6)
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
            text.set_fontsize(TEXT_SIZE)
            text.set_color(INK)
        marks = [
            artist for artist in axes.get_children() if isinstance(artist, Line2D | Collection)
        ]
        heavy = sum(map(points_of, marks)) > POINTS_TO_RASTERISE
        for artist in marks:
            artist.set_rasterized(heavy and points_of(artist) > 2)
    if title:
        figure.suptitle(
            literal(title), x=0.01, ha="left", fontsize=TITLE_SIZE, color=INK, fontweight="bold"
        )
    add_chain_legend(figure, chains)
    if legend:
        for own in figure.legends:
            own.remove()
        add_legend(figure, [Line2D([], [], color=c) for c in CHAIN_COLOURS[: len(legend)]], legend)
    return figure


@contextmanager
def _our_settings() -> Iterator[None]:
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.rcsetup import cycler

    settings: Any = {
        "axes.prop_cycle": cycler(color=list(CHAIN_COLOURS)),
        "figure.dpi": RASTER_DPI,
        "figure.facecolor": "white",  # ArviZ takes its greys from it
        "font.size": TEXT_SIZE,
        "axes.titlesize": TEXT_SIZE,
        "axes.labelsize": TEXT_SIZE,
        "lines.linewidth": 1.2,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        **dict.fromkeys(
            ("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "text.color"), INK
        ),
    }
    with matplotlib.rc_context(settings), pyplot.ioff():
        yield


def points_of(artist: Artist) -> int:
    """Count the points of a line or a scatter."""
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata(orig=False))
    if isinstance(artist, PathCollection):
        return len(np.atleast_2d(artist.get_offsets()))
    return 0
