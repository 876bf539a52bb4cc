"""Traces and ranks of a posterior's worst parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onebasin.base.checks import check_count
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from ..diagnostics.measure import gather, measure
from ..figures.picture import Picture
from ..figures.trace_rank import plot_trace_rank, trace_rank
from ..report import seen


def plot_traces(
    posterior: Posterior, *, var_names: str | Sequence[str] | None = None, rows: int = 4
) -> Picture:
    """Draw traces and rank histograms, chain by chain: of the log density, and of the worst parameters.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes.
    var_names : str or sequence of str, optional
        The variables to draw; by default the log density and the parameters of largest R-hat.
    rows : int
        How many quantities at most.

    Returns
    -------
    matplotlib.figure.Figure
        Where chains agree, every chain's rank histogram lies near the dashed line.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot_traces(posterior, rows=2)
    """
    check_count("rows", rows)
    view = as_view(posterior)
    names = [var_names] if isinstance(var_names, str) else var_names
    table = gather(view, measure(view, var_names=names), names).table
    worst = table.sort_values(["rhat", "ess_bulk"], ascending=[False, True], na_position="last")
    draws = view.draws(names)
    quantities = []
    lp = view.stat(schema.LP)
    if names is None and lp is not None and np.isfinite(lp).all():
        quantities.append(trace_rank(schema.LP, lp))
    for name in worst.index[: rows - len(quantities)]:
        quantities.append(trace_rank(str(name), draws.of(str(name))))
    told = seen.traces({quantity.name: quantity.draws for quantity in quantities})
    return plot_trace_rank(quantities).on_paper(told)
