"""Marginal distributions by ArviZ's plots: intervals, densities by chain, and ranks by chain.

Parameters come in the model's order. Source of the rank plot: Säilynoja, Bürkner and Vehtari 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onebasin.base.checks import check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors.rhat_ess import rhat
from onebasin.posteriors.view import Posterior, as_view

from .style import Picture
from .theme import Quantity, drawn, few

LONGEST_IN_FOREST = 44


@checks_arguments
def plot_forest(
    posterior: Posterior, *, var_names: str | Sequence[str] | None = None, rows: int = 24
) -> Picture:
    """Draw medians with the central 50 % and 90 % intervals of parameters, in the model's order.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes; align it first if labels switch.
    var_names : str or sequence of str, optional
        The variables to draw; by default the parameters.
    rows : int
        The number of scalar parameters at most.

    Returns
    -------
    matplotlib.figure.Figure
        A row a parameter, in the parameters' own unit.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.forest(posterior)
    """
    quantities = _quantities(posterior, var_names, rows)
    return draw_forest(quantities).on_paper(intervals(quantities))


@checks_arguments
def plot_densities(
    posterior: Posterior, *, var_names: str | Sequence[str] | None = None, rows: int = 12
) -> Picture:
    """Draw the marginal density of each parameter, one line a chain.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes.
    var_names : str or sequence of str, optional
        The variables to draw; by default the parameters.
    rows : int
        The number of scalar parameters at most.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a parameter. Where chains agree, their lines cover each other.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.densities(posterior, var_names="mu")
    """
    from arviz_plots import plot_dist

    quantities = _quantities(posterior, var_names, rows)
    # A sample dimension less for ArviZ, an aesthetic more: a density a chain.
    figure = _by_chain(
        plot_dist,
        quantities,
        sample_dims=["draw"],
        cols=["__variable__"],
        aes={"color": ["chain"]},
        visuals={"credible_interval": False, "point_estimate": False, "point_estimate_text": False},
    )
    return figure.on_paper(f"Densities, chain by chain. {intervals(quantities)}")


@checks_arguments
def plot_ranks(
    posterior: Posterior, *, var_names: str | Sequence[str] | None = None, rows: int = 4
) -> Picture:
    """Draw the distribution of each chain's ranks, as the difference from a uniform one, with a p-value.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes.
    var_names : str or sequence of str, optional
        The variables to draw; by default the parameters.
    rows : int
        The number of scalar parameters at most.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a parameter, with the p-value of ArviZ's test that all chains have the same distribution, which
        accounts for autocorrelation. Chains that agree stay near zero.

    Raises
    ------
    ValueError
        If a variable is unknown, a draw is not finite, or there is one chain.

    Examples
    --------
    >>> figure = ob.plot.ranks(posterior, var_names="mu")
    """
    from arviz_plots import plot_rank

    quantities = _quantities(posterior, var_names, rows)
    if len(next(iter(quantities.values()))) < 2:
        raise ArgumentError(
            "`posterior` has one chain, and ranks compare chains: look at `ob.plot.traces`, or run more chains."
        )
    rhats = map(float, rhat(np.stack(list(quantities.values()))))
    figure = _by_chain(plot_rank, quantities, hidden=("suspicious_points",))
    for axes in figure.axes:
        for text in axes.texts:  # "p=0.00(α=0.01)", which lies over the lines
            p_value = text.get_text().partition("(")[0].replace("=0.00", " < 0.01")
            p_value = p_value.replace("=", " = ")
            axes.title.set_text(f"{axes.get_title()}, {p_value}")
            text.set_visible(False)
    return figure.on_paper(ranks_in_words(quantities, dict(zip(quantities, rhats, strict=True))))


def draw_forest(quantities: Mapping[str, Quantity]) -> Picture:
    """Draw medians and central intervals, a row a quantity."""
    from arviz_plots import plot_forest as arviz_forest

    figure = drawn(
        arviz_forest,
        few(quantities, longest=LONGEST_IN_FOREST),
        height=0.28 * len(quantities) + 0.7,
        combined=True,
        ci_kind="eti",
        ci_probs=(0.5, 0.9),
        point_estimate="median",
        visuals={"ticklabels": False},
    )
    names = figure.axes[0]  # the panel of the names, left of that of the intervals
    names.xaxis.set_visible(False)
    names.spines["bottom"].set_visible(False)
    return figure


def intervals_in_words(
    names: Sequence[str],
    low: Sequence[float],
    middle: Sequence[float],
    high: Sequence[float],
    *,
    most: int = 12,
) -> str:
    """Say where medians and intervals lie."""
    rows = list(zip(names, low, middle, high, strict=True))
    told = "; ".join(
        f"{name} {format_number(m)} ({format_number(a)} to {format_number(b)})"
        for name, a, m, b in rows[:most]
    )
    rest = f"; and {len(rows) - most} more" if len(rows) > most else ""
    return f"Medians, with where 90 % of draws lie: {told}{rest}."


def ranks_in_words(quantities: Mapping[str, Quantity], rhats: Mapping[str, float]) -> str:
    """Say of every quantity which chain's ranks lie furthest from even."""
    told = []
    for name, values in quantities.items():
        order = np.argsort(np.argsort(values, axis=None)).reshape(values.shape) / values.size
        mean, rhat = order.mean(axis=1), rhats.get(name, np.nan)
        chain = int(np.abs(mean - 0.5).argmax())
        known = "" if np.isnan(rhat) else f" (R-hat {format_number(rhat, decimals=3)})"
        side = "high" if mean[chain] > 0.5 else "low"
        place = f"at the {100 * mean[chain]:.0f} % rank on average where 50 % is even"
        if len(values) < 2:
            told.append(f"{name}: one chain, whose ranks are even by construction.")
        elif abs(mean[chain] - 0.5) < 0.05:
            told.append(f"{name}: no chain lies higher or lower than the others{known}.")
        else:
            told.append(f"{name}: chain {chain} lies {side}, {place}{known}.")
    return " ".join(told)


def intervals(quantities: Mapping[str, Quantity]) -> str:
    """Say where the median of each quantity and 90 % of its draws lie."""
    ends = np.quantile(np.stack(list(quantities.values())), [0.05, 0.5, 0.95], axis=(1, 2))
    return intervals_in_words(list(quantities), *ends.tolist())


def _quantities(
    posterior: Posterior, var_names: str | Sequence[str] | None, rows: int
) -> dict[str, Quantity]:
    """Draws of the first scalar parameters, by name."""
    check_count("rows", rows)
    view = as_view(posterior)
    parameters = [name for name in view.variables if view.kinds.of.get(name) == "parameter"]
    draws = view.draws(parameters or None if var_names is None else var_names)
    return {name: draws.of(name) for name in draws.names[:rows]}


def _by_chain(
    plot: Callable[..., Any], quantities: Mapping[str, Quantity], **options: Any
) -> Picture:
    """Draw a panel a quantity, chains in colours."""
    columns = min(len(quantities), 4)
    return drawn(
        plot,
        few(quantities),
        height=2.0 * -(-len(quantities) // columns) + 0.4,
        chains=len(next(iter(quantities.values()))),
        col_wrap=columns,
        **options,
    )
