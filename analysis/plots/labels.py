"""Labels as they came and aligned: traces, a row a variable, one colour a component, chain after chain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from onebasin.base.checks import check_count
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.posteriors.view import Posterior, View, as_view

from ..alignment.align import align
from ..alignment.result import Alignment, event_shapes
from ..diagnostics.result import AlignedDiagnosis, Diagnosis
from ..discovery.of_posterior import search_posterior
from ..figures.component_traces import Column, Kind, Lines, draw_columns
from ..figures.picture import Picture
from ..summaries.deciding import rhat_of_entries
from .parts import Row, rows_of
from .said import lines_in_words


def plot_labels(
    posterior: Posterior,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 3,
    components: int | None = None,
) -> Picture:
    """Draw interchangeable components as they came: where labels switch, colours change places.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes.
    symmetry : tuple of blocks, or words of them, optional
        What changes places, in blocks or words such as ``"mu,sigma"``; by default what the posterior declares, else
        what is found in its draws.
    var_names : str or sequence of str, optional
        The variables to draw; by default those that disagree most between chains.
    rows, components : int
        How many variables, and lines in each, at most; by default three variables, eight components, or three entries
        of a variable that changes as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        A row a variable, a colour a component, chain after chain; `alt` says in words what it shows.

    Raises
    ------
    ValueError
        If no symmetry is given, declared or found, or a variable is not moved by it.

    Examples
    --------
    >>> figure = ob.plot_labels(posterior)
    >>> len(figure.axes)  # a row for mu, and one for theta
    2
    """
    view = as_view(posterior)
    blocks = _blocks(view, symmetry)
    chosen = _chosen(view, blocks, var_names, rows, components)
    return _drawn([_column("", view.posterior, chosen)], chosen, view)


def plot_aligned(
    posterior: Posterior | Diagnosis | AlignedDiagnosis | Alignment,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 3,
    components: int | None = None,
) -> Picture:
    """Draw interchangeable components as they came and aligned, side by side.

    Parameters
    ----------
    posterior : Alignment, Diagnosis, or posterior
        The posterior, in any form that `diagnose` takes; or what `align` or `diagnose` returned, of which nothing is
        aligned again.
    symmetry : tuple of blocks, or words of them, optional
        What changes places, in blocks or words such as ``"mu,sigma"``; by default what the posterior declares, else
        what is found in its draws.
    var_names : str or sequence of str, optional
        The variables to draw; by default those that disagree most between chains.
    rows, components : int
        How many variables, and lines in each, at most; by default three variables, eight components, or three entries
        of a variable that changes as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        On the left the draws as they came, on the right aligned, with the largest R-hat of all that moves.

    Raises
    ------
    ValueError
        If no symmetry is given, declared or found, or a variable is not moved by it.

    Examples
    --------
    >>> figure = ob.plot_aligned(posterior, var_names="mu")
    >>> figure.savefig("mu.png")
    """
    alignment = _alignment_of(posterior, symmetry)
    view = alignment.source
    chosen = _chosen(view, alignment.symmetry, var_names, rows, components)
    after = as_view(alignment.posterior).posterior
    columns = [
        _column(f"{what}{_worst(view, dataset, alignment.symmetry)}", dataset, chosen)
        for what, dataset in (("As they came", view.posterior), ("Aligned", after))
    ]
    return _drawn(columns, chosen, view)


def _alignment_of(posterior: object, symmetry: Symmetry | str | Sequence[str] | None) -> Alignment:
    if isinstance(posterior, Alignment):
        return posterior
    if isinstance(posterior, AlignedDiagnosis):
        return posterior.alignment
    if isinstance(posterior, Diagnosis):
        if posterior.aligned is None:
            raise ArgumentError(
                "`posterior` is a diagnosis that aligned nothing; give the posterior itself, with `symmetry` if it "
                "declares none."
            )
        return posterior.aligned.alignment
    return align(posterior, symmetry)


def _blocks(view: View, symmetry: Symmetry | str | Sequence[str] | None) -> Symmetry:
    """What changes places: given, else declared, else seen in the draws, whether alignment could undo it or not."""
    given = view.symmetry if symmetry is None else view.as_symmetry(symmetry)
    blocks = equal_modes(given) or tuple(each.block for each in search_posterior(view))
    if not blocks:
        raise ArgumentError(
            f"`symmetry` is not given, `{view.argument}` declares none, and its draws show no labels that switch: give "
            "blocks or words of what is interchangeable, such as 'mu,sigma'."
        )
    shapes = event_shapes(view.posterior, view.variables)
    for block in blocks:
        block.check(shapes)
    return blocks


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


def _column(title: str, dataset: xr.Dataset, rows: Sequence[Row]) -> Column:
    return Column(title, tuple(row.of(dataset) for row in rows))


def _drawn(columns: Sequence[Column], rows: Sequence[Row], view: View) -> Picture:
    lines, kind = [Lines(row.title, row.labels, row.parts) for row in rows], _kind(view)
    told = []
    for column in columns:
        told += [f"{column.title}."] if column.title else []
        told += [
            lines_in_words(row.title, row.labels, values, group=kind.group, follow=kind.follow)
            for row, values in zip(rows, column.rows, strict=True)
        ]
    return draw_columns(columns, lines, kind).on_paper(" ".join(told))


def _kind(view: View) -> Kind:
    if view.is_ensemble:
        return Kind(draw="member", follow=False)
    return Kind(group="fit", follow=False) if view.is_variational else Kind()


def _worst(view: View, dataset: xr.Dataset, symmetry: Symmetry) -> str:
    """The largest R-hat of all that moves, where chains can be held against one another."""
    if view.is_variational or view.is_ensemble:
        return ""
    names = dict.fromkeys(name for block in symmetry for name in block.variables)
    worst = -np.inf
    for name in names:
        values = dataset[name].transpose("chain", "draw", ...).values
        rhats = rhat_of_entries(values.reshape(*values.shape[:2], -1).astype(np.float64))
        worst = max(worst, float(np.nanmax(rhats, initial=-np.inf)))
    return f": R-hat {worst:.2f}" if np.isfinite(worst) else ""
