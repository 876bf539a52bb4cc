"""Labels as they came and aligned: traces, a row a variable, one colour a component, chain after chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.checks import check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import Posterior, View, as_view

from ..alignment.align import align
from ..alignment.alignment import Alignment
from ..diagnostics.result import AlignedDiagnosis, Diagnosis
from ..discovery.resolve import resolve
from ..summaries.judged_draws import rhat_of_entries
from .components import DrawKind, Lines, Row, draw_columns, in_plain_view, rows_of
from .style import Picture
from .traces import TWO_LEVELS, two_levels


@checks_arguments
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
    >>> figure = ob.plot.labels(posterior)
    >>> len(figure.axes)  # a row for mu, and one for theta
    2
    """
    view = as_view(posterior)
    resolved = resolve(view, symmetry, look=True)
    blocks = tuple(each.block for each in resolved.candidates) or resolved.equal_modes
    if not blocks:
        raise ArgumentError(
            f"`symmetry` is not given, `{view.argument}` declares none, and its draws show no labels that switch: give "
            "blocks or words of what is interchangeable, such as 'mu,sigma'."
        )
    shapes = event_shapes(view.posterior, view.variables)
    for block in blocks:
        block.check(shapes)
    chosen = _chosen(view, blocks, var_names, rows, components)
    return _drawn({"": in_plain_view(view.posterior, blocks)[0]}, chosen, view)


@checks_arguments
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
    >>> figure = ob.plot.aligned(posterior, var_names="mu")
    >>> figure.savefig("mu.png")
    """
    alignment = _alignment_of(posterior, symmetry)
    view = alignment.source
    chosen = _chosen(view, alignment.symmetry, var_names, rows, components)
    after = as_view(alignment.posterior).posterior
    moved = dict.fromkeys(name for block in alignment.symmetry for name in block.variables)
    comparable = not (view.is_variational or view.is_ensemble)
    columns = {}
    for what, dataset in (("As they came", view.posterior), ("Aligned", after)):
        worst = -np.inf  # R-hat of all that moves
        for name in moved if comparable else ():
            values = dataset[name].transpose("chain", "draw", ...).values
            rhats = rhat_of_entries(values.reshape(*values.shape[:2], -1).astype(np.float64))
            worst = max(worst, float(np.nanmax(rhats, initial=-np.inf)))
        title = f"{what}: R-hat {worst:.2f}" if np.isfinite(worst) else what
        columns[title] = in_plain_view(dataset, alignment.symmetry)[0]
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


def _drawn(columns: Mapping[str, xr.Dataset], rows: Sequence[Row], view: View) -> Picture:
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
    return draw_columns(values, rows, kind).on_paper(" ".join(told))


LEVEL = 0.5
"""Share of a line's spread within chains by which medians may differ where chains are said to agree."""
CHAINS, LINES = 8, 4
"""Chains and lines up to which each is told."""


def lines_in_words(row: Row, values: Lines, kind: DrawKind) -> str:
    """Say where the lines of one row lie, and which of them jump where one draw follows from another."""
    where = [_where(values[..., k], kind) for k in range(min(len(row.labels), LINES))]
    if len(row.labels) > 1:
        where = [f"{label} {lies}" for label, lies in zip(row.labels, where, strict=False)]
    more = f"; and {len(row.labels) - LINES} more" if len(row.labels) > LINES else ""
    return f"{row.title}: {'; '.join(where)}{more}."


def _where(values: Float[np.ndarray, "chain draw"], kind: DrawKind) -> str:
    group = kind.group
    jumping: dict[int, tuple[float, float]] = {}
    for chain, draws in enumerate(values):
        if kind.follow and np.ptp(draws):
            low, high, share, upper = two_levels(draws)
            if share >= TWO_LEVELS and 0.02 < float(upper.mean()) < 0.98:
                jumping[chain] = low, high
    if jumping:
        low, high = next(iter(jumping.values()))
        levels = f"between {format_number(low)} and {format_number(high)}"
        within = f"{len(jumping)} of {len(values)} {group}s"
        if len(jumping) == len(values):
            within = f"every {group}" if len(values) > 1 else f"the {group}"
        elif len(jumping) <= CHAINS:
            within = f"{group}{'s' * (len(jumping) > 1)} {', '.join(map(str, jumping))}"
        return f"jumps {levels} within {within}"
    medians = np.median(values, axis=1)
    ends = np.quantile(values, [0.05, 0.95], axis=1)
    if np.ptp(medians) <= LEVEL * float(np.median(ends[1] - ends[0])):
        where = f" in every {group}" if len(values) > 1 else ""
        low, high = np.quantile(values, [0.05, 0.95])
        return f"lies between {format_number(float(low))} and {format_number(float(high))}{where}"
    if len(values) > CHAINS:
        span = f"{format_number(medians.min())} to {format_number(medians.max())}"
        return f"lies elsewhere from {group} to {group}, around {span}"
    levels = ", ".join(format_number(float(median)) for median in medians)
    return f"lies around {levels} in {group}s 0 to {len(values) - 1}"
