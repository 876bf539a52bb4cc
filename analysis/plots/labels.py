"""Traces of interchangeable components as sampled and aligned: one row per variable, one colour per component.

A row shows a variable, with one line for every component of its block. The line is the entry of the component (on the
diagonal if a block moves two axes of the variable) at one position along the other axes. If a block changes a whole
variable, the row shows some of its entries. The rows shown disagree most between chains before alignment.

The horizontal axis shows the draws of the first chain, then of the second, and so on, with vertical lines between
chains. All columns of a row share their vertical axis, which makes moves visible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from onebasin.base.checks import check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Block, Symmetry, axes_of, variables_of
from onebasin.models.symmetry.plain import PlainView, plain_view
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import Posterior, View, as_view

from ..alignment.align import align
from ..alignment.alignment import Alignment
from ..diagnostics.result import AlignedDiagnosis, Diagnosis
from ..discovery.resolve import resolve
from ..summaries.summary import every_few, rhat_of_entries
from .chains import envelope, traces_in_words
from .style import (
    INK,
    LONGEST,
    MUTED,
    TEXT_SIZE,
    Picture,
    add_legend,
    chain_colour,
    literal,
    new_figure,
    shortened,
    style_axes,
)

Lines = Float[np.ndarray, "chain draw line"]
Place = tuple[int, ...]
COMPONENTS, ENTRIES = 8, 3
"""Largest number of lines in a row: of components, and of entries that change together, which lie closer."""
POINTS = 1200
"""Largest number of points in a line, over all panels of a row."""
NUMBERED = 12
"""Largest number of chains that are numbered on the axis."""


@dataclass(frozen=True, eq=False)
class Row:
    """A row of a figure: the lines of one variable."""

    name: str  # The variable.
    title: str  # Title of the row, with the position along other axes.
    places: tuple[Place, ...]  # Index of each line's entry in the variable.
    labels: tuple[str, ...]  # Label of each line.
    parts: int  # Number of lines before limiting it.
    block: int  # Number of its block in the symmetry.
    rhat: float  # Largest R-hat of the lines, if any (between halves of a single chain).

    def of(self, dataset: xr.Dataset) -> Lines:
        """Return the draws of the row from a dataset with the variable."""
        values = dataset[self.name].transpose("chain", "draw", ...)
        lines = [values[(slice(None), slice(None), *place)].values for place in self.places]
        return np.stack(lines, axis=-1).astype(np.float64)

    def only(self, kept: np.ndarray) -> Row:
        """Return the row with only the lines `kept`."""
        places, labels = zip(*((self.places[k], self.labels[k]) for k in kept), strict=True)
        return replace(self, places=places, labels=labels)


def rows_of(
    view: View,
    symmetry: Symmetry,
    *,
    var_names: Sequence[str] | None,
    rows: int,
    components: int | None,
) -> tuple[Row, ...]:
    """Choose rows to plot: for each variable, the row on which chains disagree most, and of these the worst.

    `var_names` are plotted in the given order. The numbers of rows and of components per row are limited. A variable
    that the symmetry does not move raises an error. Many draws are thinned.
    """
    step = every_few(view, [n for n in variables_of(symmetry) if n in view.posterior])
    thinned = view.posterior.isel(draw=slice(None, None, step))
    dataset, plain = in_plain_view(thinned, symmetry)
    blocks = plain.blocks
    moved = [name for name in variables_of(blocks) if name in dataset]
    asked = () if var_names is None else var_names
    of = {name: plain.sources(name) for name in moved}
    wanted = [n for name in asked for n in [m for m in moved if name in (m, *of[m])] or [name]]
    if unknown := [name for name in wanted if name not in moved]:
        raise ArgumentError(
            f"`var_names` contains `{unknown[0]}`, which the symmetry does not move. Choose from {', '.join(moved)}."
        )
    found: dict[str, Row] = {}
    for number, block in enumerate(blocks):
        for name in block.variables:
            if name in moved and (not wanted or name in wanted) and name not in found:
                rows_of_it = _rows(dataset, block, number, name, components or ENTRIES)
                found[name] = max(rows_of_it, key=lambda row: row.rhat)
    if wanted:
        chosen = [found[name] for name in dict.fromkeys(wanted)]
    else:
        chosen = sorted(found.values(), key=lambda row: row.rhat, reverse=True)[:rows]
        chosen.sort(key=lambda row: moved.index(row.name))
    # All rows of a block show the same components: those that disagree most in its worst row.
    most, few = components or COMPONENTS, dict[int, np.ndarray]()
    for row in sorted(chosen, key=lambda row: row.rhat, reverse=True):
        if len(row.places) > most and row.block not in few:
            rhats = np.nan_to_num(rhat_of_entries(row.of(dataset)), nan=-np.inf)
            few[row.block] = np.sort(np.argsort(-rhats, kind="stable")[:most])
    return tuple(row.only(few[row.block]) if len(row.places) > most else row for row in chosen)


def in_plain_view(dataset: xr.Dataset, symmetry: Symmetry) -> tuple[xr.Dataset, PlainView]:
    """Return draws with the added arrays of the plain view, and the view."""
    names = [n for n in variables_of(symmetry) if n in dataset]
    values = {n: dataset[n].transpose("chain", "draw", ...) for n in names}
    known = (b if {*b.variables} <= {*names} else b.restricted(names) for b in symmetry)
    plain = plain_view(tuple(b for b in known if b), {n: v.shape[2:] for n, v in values.items()})
    needed = {piece.source for piece in plain.pieces}  # Read no more from the file.
    needed |= {n for b in plain.declared if b.stacked is not b for n in b.variables}
    stacked = plain.stack({n: v.values for n, v in values.items() if n in needed}, 2)
    more = dataset.assign(
        {
            name: (("chain", "draw", *(f"{name}_dim_{k}" for k in range(array.ndim - 2))), array)
            for name, array in stacked.items()
            if name not in values
        }
    )
    return more, plain


def _rows(dataset: xr.Dataset, block: Block, number: int, name: str, most: int) -> Iterator[Row]:
    variable = dataset[name].transpose("chain", "draw", ...)
    shape = variable.shape[2:]
    if name not in block.axes:
        yield _of_entries(dataset, block, number, name, most)
        return
    moved = axes_of(block.axes[name])
    others = [axis for axis in range(len(shape)) if axis not in moved]
    values = np.asarray(variable.values, np.float64)
    labels = tuple(f"component {label}" for label in _labels(variable, moved[0]))
    for rest in product(*(range(shape[axis]) for axis in others)):
        at: list[str] = ["·"] * len(shape)
        places = []
        for part in range(shape[moved[0]]):
            place = [part] * len(shape)
            for axis, index in zip(others, rest, strict=True):
                place[axis] = index
                at[axis] = str(_labels(variable, axis)[index])
            places.append(tuple(place))
        title = f"{name}[{', '.join(at)}]" if others else name
        lines = values[:, :, *np.transpose(places)]
        rhat = _largest(rhat_of_entries(lines))
        yield Row(name, title, tuple(places), labels, len(labels), number, rhat)


def _of_entries(dataset: xr.Dataset, block: Block, number: int, name: str, most: int) -> Row:
    """Choose the entries that the change moves most clearly."""
    variable = dataset[name].transpose("chain", "draw", ...)
    values = np.asarray(variable.values, np.float64)
    flat = values.reshape(*values.shape[:2], -1) - (0.5 if name in block.complemented else 0.0)
    apart = np.abs(flat)
    spread = apart.std(axis=(0, 1))
    clear = np.divide(apart.mean(axis=(0, 1)), spread, out=np.zeros_like(spread), where=spread > 0)
    chosen = np.sort(np.argsort(-clear, kind="stable")[:most])
    places = [tuple(map(int, np.unravel_index(k, values.shape[2:]))) for k in chosen]
    labels = []
    for place in places:
        at = [str(_labels(variable, axis)[index]) for axis, index in enumerate(place)]
        labels.append(f"{name}[{', '.join(at)}]" if at else name)
    rhat = _largest(rhat_of_entries(flat[..., chosen]))
    return Row(name, name, tuple(places), tuple(labels), flat.shape[2], number, rhat)


def _labels(variable: xr.DataArray, axis: int) -> Sequence[object]:
    return variable[variable.dims[2 + axis]].values.tolist()


def _largest(rhats: np.ndarray) -> float:
    """Return the largest finite R-hat, or minus infinity if there is none."""
    return float(np.max(rhats, where=np.isfinite(rhats), initial=-np.inf))


@dataclass(frozen=True)
class DrawKind:
    """The kind of draws, with the words for a chain and a draw."""

    group: str = "chain"
    draw: str = "draw"
    follow: bool = True  # Whether draws are consecutive. Independent draws are plotted as points.


def draw_columns(
    columns: Mapping[str, Sequence[Float[np.ndarray, "chain draw _"]]],
    rows: Sequence[Row],
    kind: DrawKind,
) -> Picture:
    """Plot the lines of all rows, in one or several columns with headings."""
    several = {(row.labels, row.parts) for row in rows if len(row.labels) > 1}
    figure = new_figure(7.8 if len(columns) == 1 else 8.6, 1.5 * len(rows) + 0.9)
    grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey="row")
    for place, (heading, lines) in enumerate(columns.items()):
        for number, (row, values) in enumerate(zip(rows, lines, strict=True)):
            order = f"{kind.draw}s of each {kind.group}, in order" if len(values) > 1 else kind.draw
            axes = style_axes(
                grid[number, place],
                title=heading if number == 0 else "",
                y_label=shortened(row.title, LONGEST) if place == 0 else "",
                x_label=order if number == len(rows) - 1 else "",
            )
            _draw(axes, values, kind, POINTS // len(columns))
            if len(several) > 1 and len(row.labels) > 1 and place == len(columns) - 1:
                handles, labels, heading = _named(row)
                legend = axes.legend(
                    handles,
                    labels,
                    title=heading or None,
                    loc="center left",
                    bbox_to_anchor=(1.0, 0.5),
                    frameon=False,
                    fontsize=TEXT_SIZE - 1,
                    labelcolor=INK,
                    handlelength=1.0,
                    labelspacing=0.3,
                )
                legend.get_title().set(fontsize=TEXT_SIZE - 1, color=MUTED)
    if len(several) == 1:
        handles, labels, some = _named(next(row for row in rows if len(row.labels) > 1))
        if some:
            handles, labels = [Line2D([], [], linestyle="none"), *handles], [f"{some}:", *labels]
        add_legend(figure, handles, labels, columns=5)
    return figure


def _draw(axes: Axes, values: Lines, kind: DrawKind, most: int) -> None:
    chains, draws, lines = values.shape
    points = max(40, most // chains)
    for chain in range(chains):
        for line in range(lines):
            trace = values[chain, :, line]
            colour = chain_colour(line) if lines > 1 else INK
            if kind.follow:
                shown = envelope(trace, points=points)
                style: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.85}
            else:
                shown = np.arange(0, draws, max(1, -(-draws // points)))
                style = {
                    "linestyle": "none",
                    "marker": ".",
                    "markersize": 3 if chains * draws > 200 else 7,
                }
            axes.plot(chain * draws + shown + 1, trace[shown], color=colour, **style)
    axes.set_xlim(0.5, chains * draws + 0.5)
    axes.locator_params(axis="y", nbins=4)
    if chains > 1:
        for chain in range(1, chains):
            axes.axvline(chain * draws + 0.5, color=MUTED, linewidth=0.7)
        middles = (np.arange(chains) + 0.5) * draws
        names = [f"{kind.group} {k}" if chains <= 5 else str(k) for k in range(chains)]
        every = max(1, -(-chains // NUMBERED))
        axes.set_xticks(middles[::every], names[::every])
        axes.tick_params(axis="x", length=0)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def _named(row: Row) -> tuple[list[Line2D], list[str], str]:
    """Return handles and labels of a legend, and a heading if it shows only some components."""
    labels = [literal(shortened(label, LONGEST)) for label in row.labels]
    handles = [Line2D([], [], color=chain_colour(k), linewidth=2.5) for k in range(len(labels))]
    return handles, labels, f"{len(labels)} of {row.parts}" if len(labels) < row.parts else ""


@checks_arguments
def plot_labels(
    posterior: Posterior,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 3,
    components: int | None = None,
) -> Picture:
    """Plot interchangeable components as sampled. If labels switch, colours change places.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` accepts.
    symmetry : tuple of blocks, str or sequence of str, optional
        The interchangeable parameters, as blocks or strings such as ``"mu,sigma"``; by default those that the posterior
        declares, or otherwise those found in its draws.
    var_names : str or sequence of str, optional
        The variables to plot; by default those that disagree most between chains.
    rows, components : int
        Maximum number of variables, and of lines in each. By default three variables and eight components, or three
        entries if a variable changes as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        One row per variable, one colour per component, chain after chain. Its `alt` describes it in words.

    Raises
    ------
    ValueError
        If no symmetry is given, declared or found, or if it does not move a variable.

    Examples
    --------
    >>> figure = ob.plot.labels(posterior)
    >>> len(figure.axes)  # a row for mu and a row for theta
    2
    """
    view = as_view(posterior)
    resolved = resolve(view, symmetry, look=True)
    blocks = tuple(each.block for each in resolved.candidates) or resolved.equal_modes
    if not blocks:
        raise ArgumentError(
            f"onebasin does not know which labels to plot: `symmetry` is not given, `{view.argument}` declares no "
            "symmetry, and no label switching was found in the draws. Declare the interchangeable parameters, as in "
            "symmetry='mu,sigma'."
        )
    shapes = event_shapes(view.posterior, view.variables)
    for block in blocks:
        block.check(shapes)
    chosen = _chosen(view, blocks, var_names, rows, components)
    figure, told = _drawn({"": in_plain_view(view.posterior, blocks)[0]}, chosen, view)
    return figure.on_paper(told)


@checks_arguments
def plot_aligned(
    posterior: Posterior | Diagnosis | AlignedDiagnosis | Alignment,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 3,
    components: int | None = None,
) -> Picture:
    """Plot interchangeable components as sampled and aligned, side by side.

    Parameters
    ----------
    posterior : Alignment, Diagnosis, or posterior
        The posterior, in any form that `diagnose` accepts, or the result of `align` or `diagnose`, which is not aligned
        again.
    symmetry : tuple of blocks, str or sequence of str, optional
        The interchangeable parameters, as blocks or strings such as ``"mu,sigma"``; by default those that the posterior
        declares, or otherwise those found in its draws.
    var_names : str or sequence of str, optional
        The variables to plot; by default those that disagree most between chains.
    rows, components : int
        Maximum number of variables, and of lines in each. By default three variables and eight components, or three
        entries if a variable changes as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        The draws as sampled (left) and aligned (right), with the largest R-hat of the moved parameters.

    Raises
    ------
    ValueError
        If no symmetry is given, declared or found, or if it does not move a variable.

    Examples
    --------
    >>> figure = ob.plot.aligned(posterior, var_names="mu")
    >>> figure.savefig("mu.png")
    """
    alignment = _alignment_of(posterior, symmetry)
    chosen = _chosen(alignment.source, alignment.symmetry, var_names, rows, components)
    figure, told = draw_aligned(alignment, chosen)
    return figure.on_paper(told)


def draw_aligned(alignment: Alignment, chosen: Sequence[Row] | None = None) -> tuple[Picture, str]:
    """Plot rows as sampled and aligned, and describe them in words."""
    view = alignment.source
    chosen = _chosen(view, alignment.symmetry, None, 3, None) if chosen is None else chosen
    after = as_view(alignment.posterior)
    moved = variables_of(alignment.symmetry)
    # Like the verdict, prefer parameters to other moved quantities.
    judged = [n for n in moved if n in view.kinds.named("parameter")] or [*moved]
    comparable = not (view.is_variational or view.is_ensemble)
    columns = {}
    for what, shown in (("As sampled", view), ("Aligned", after)):
        blocks = shown.draws(judged, finite=False).blocks() if comparable else ()
        rhats = (np.nanmax(rhat_of_entries(block), initial=-np.inf) for block in blocks)
        worst = max(rhats, default=-np.inf)  # The largest R-hat of the moved quantities.
        title = f"{what}: R-hat {worst:.2f}" if np.isfinite(worst) else what
        columns[title] = in_plain_view(shown.posterior, alignment.symmetry)[0]
    return _drawn(columns, chosen, view)


def _alignment_of(posterior: object, symmetry: Symmetry | str | Sequence[str] | None) -> Alignment:
    if isinstance(posterior, Alignment):
        return posterior
    if isinstance(posterior, AlignedDiagnosis):
        return posterior.alignment
    if isinstance(posterior, Diagnosis):
        if posterior.aligned is None:
            raise ArgumentError(
                "`posterior` is a diagnosis without aligned draws. Give the posterior itself, and also `symmetry` "
                "if the posterior declares no symmetry."
            )
        return posterior.aligned.alignment
    return align(posterior, symmetry)


def _chosen(
    view: View,
    symmetry: Symmetry,
    var_names: str | Sequence[str] | None,
    rows: int,
    components: int | None,
) -> tuple[Row, ...]:
    check_count("rows", rows)
    if components is not None:
        check_count("components", components)
    names = [var_names] if isinstance(var_names, str) else var_names
    return rows_of(view, symmetry, var_names=names, rows=rows, components=components)


def _drawn(
    columns: Mapping[str, xr.Dataset], rows: Sequence[Row], view: View
) -> tuple[Picture, str]:
    kind = DrawKind()
    if view.is_ensemble:
        kind = DrawKind(draw="member", follow=False)
    elif view.is_variational:
        kind = DrawKind(group="fit", follow=False)
    values = {title: [row.of(dataset) for row in rows] for title, dataset in columns.items()}
    told = []
    for title, lines in values.items():
        told += [f"{title}."] if title else []
        told += [lines_in_words(row, drawn, kind) for row, drawn in zip(rows, lines, strict=True)]
    return draw_columns(values, rows, kind), " ".join(told)


LINES = 4
"""Largest number of lines that the text describes."""


def lines_in_words(row: Row, values: Lines, kind: DrawKind) -> str:
    """Describe in words where the lines of one row lie."""
    lines = {label: values[..., k] for k, label in enumerate(row.labels[:LINES])}
    if len(row.labels) == 1:
        lines = {row.title: values[..., 0]}
    more = f" And {len(row.labels) - LINES} more." if len(row.labels) > LINES else ""
    told = traces_in_words(lines, kind.group)
    return f"{row.title}: {told}{more}" if len(lines) > 1 else told
