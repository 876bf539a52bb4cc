"""Two parameters against each other, a panel a posterior."""

from __future__ import annotations

from ..figures.picture import Picture
from ..figures.weight_scatter import WeightPair, plot_weight_scatter
from .given import Posteriors, views_of


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
    pairs = {}
    for name, view in views_of(posteriors).items():
        draws = view.draws()
        for wanted in (first, second):
            if wanted not in draws.names:
                raise ValueError(
                    f"`{view.argument}` has no parameter `{wanted}`; choose one of {', '.join(draws.names[:8])}, ..."
                )
        pairs[name] = WeightPair(draws.of(first), draws.of(second))
    return plot_weight_scatter(
        pairs, x_label=first, y_label=second, share_axes=share_axes
    ).on_paper("")
