"""Two parameters against each other, a panel a posterior."""

from __future__ import annotations

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.base.numbers import format_number
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.view import View

from ..figures.picture import Picture
from ..figures.weight_scatter import WeightPair, plot_weight_scatter
from .given import Posteriors, titled, views_of


def plot_pair(
    posteriors: Posteriors, first: str, second: str, *, share_axes: bool = True
) -> Picture:
    """Draw two scalar parameters against each other, chains in colours, for one or several posteriors.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name.
    first, second : str
        Scalar parameters, such as ``W1[0,0]``: on the horizontal and on the vertical axis.
    share_axes : bool
        Whether all panels show the same ranges.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a posterior.

    Raises
    ------
    ValueError
        If a posterior lacks one of them.

    Examples
    --------
    >>> figure = ob.plot_pair(posterior, "mu[0]", "mu[1]")
    """
    pairs, told = {}, []
    for name, view in views_of(posteriors).items():
        pairs[name] = WeightPair(_draws_of(view, first), _draws_of(view, second))
        told.append(_in_words(name, first, second, pairs[name]))
    figure = plot_weight_scatter(
        titled(pairs), x_label=first, y_label=second, share_axes=share_axes
    )
    return figure.on_paper(" ".join(told))


def _draws_of(view: View, entry: str) -> np.ndarray:
    """Draws of one scalar parameter."""
    variable = variable_of(entry, view.variables)
    there = view.draws(variable) if variable in view.variables else None
    if there is None or entry not in there.names:
        known = ", ".join(there.names[:6] if there else view.variables[:6])
        raise ArgumentError(
            f"`{view.argument}` has no scalar parameter {entry!r}: choose one such as {known}."
        )
    return there.of(entry)


def _in_words(name: str, first: str, second: str, pair: WeightPair) -> str:
    from scipy.stats import spearmanr

    r = float(spearmanr(pair.first.ravel(), pair.second.ravel()).statistic)
    ends = []
    for entry, values in ((first, pair.first), (second, pair.second)):
        low, high = np.quantile(values, [0.05, 0.95])
        ends.append(f"{entry} lies between {format_number(low)} and {format_number(high)}")
    return f"{name}: in 90 % of draws {ends[0]}, and {ends[1]}; rank correlation {format_number(r, decimals=2)}."
