"""The course of chains: traces and ranks, one colour per chain.

Rank histograms are those of Vehtari et al. 2021 (section 4.3): draws are ranked over all chains, ties get average
ranks, and where chains agree every chain's histogram is flat. A long trace is drawn by the smallest and largest draw of
every few, which looks the same and weighs less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.rhat_ess import bulk_ess, mean_ranks, rhat
from onebasin.posteriors.view import Posterior

from ..diagnostics.result import Diagnosis
from .marginals import chain_names, draw_ecdfs, ecdf_less_uniform
from .posteriors import Quantity, take
from .style import (
    INK,
    LONGEST,
    MUTED,
    Picture,
    add_chain_legend,
    chain_colour,
    new_figure,
    shortened,
    style_axes,
)

POINTS_SHOWN = 400  # of a trace, whose panel is about 400 pixels wide


@checks_arguments
def plot_traces(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 4,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Draw traces and rank histograms, chain by chain: of the log density, and of the worst parameters.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes.
    var_names : str or sequence of str, optional
        The variables to draw; by default the log density and the parameters of largest R-hat.
    rows : int
        Maximum number of quantities.
    align : bool
        Whether to align draws where `diagnose` finds the posterior usable after alignment. A line over the panels
        says which draws are shown.
    diagnosis : Diagnosis, optional
        The result of `diagnose` for this posterior, if you have it; it saves time.

    Returns
    -------
    matplotlib.figure.Figure
        Where chains agree, every chain's rank histogram lies near the dashed line. Marks under a trace are divergent
        transitions.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.traces(posterior, rows=2)
    """
    drawn = take(posterior, var_names, rows, align=align, diagnosis=diagnosis, worst=True)
    lp = drawn.view.stat(schema.LP)
    quantities = dict(drawn.values)
    if var_names is None and lp is not None and np.isfinite(lp).all():
        quantities = dict(list({schema.LP: lp, **quantities}.items())[:rows])
    figure = draw_traces(quantities, drawn.view.diverging)
    return figure.on_paper(drawn.alt(traces_in_words(quantities)), drawn.labelling)


@checks_arguments
def plot_ranks(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 4,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Draw the distribution of each chain's ranks among all draws, as the difference from an even one.

    Parameters
    ----------
    posterior, var_names, rows, align, diagnosis : see `traces`
        Same as in `traces`; by default the first parameters are drawn.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per parameter, with its R-hat and a grey band. If chains agree, all curves stay within the bands of
        all panels in about 95 % of runs: the bands are those of Kolmogorov and Smirnov for as many independent draws
        as the bulk ESS, corrected for the number of chains and panels (Bonferroni).

    Raises
    ------
    ValueError
        If a variable is unknown, a draw is not finite, or there is one chain.

    References
    ----------
    Säilynoja, Bürkner and Vehtari 2022, Statistics and Computing 32 (differences of the ECDF of ranks).

    Examples
    --------
    >>> figure = ob.plot.ranks(posterior, var_names="mu")
    """
    drawn = take(posterior, var_names, rows, align=align, diagnosis=diagnosis)
    quantities = drawn.values
    if len(next(iter(quantities.values()))) < 2:
        raise ArgumentError(
            "`posterior` has one chain, and ranks compare chains: look at `ob.plot.traces`, or run more chains."
        )
    rhats = rhat(np.stack(list(quantities.values()))).tolist()
    panels, x = {}, np.linspace(0, 1, 101)
    for (name, values), found in zip(quantities.items(), rhats, strict=True):
        ranks = mean_ranks(values.ravel()).reshape(values.shape) / values.size
        title = f"{name}, R-hat {format_number(found, decimals=3)}"
        panels[title] = [(x, ecdf_less_uniform(chain, x)) for chain in ranks]
    names = chain_names(quantities)
    figure = draw_ecdfs(panels, names, rank_bands(quantities), x_label="rank")
    told = ranks_in_words(quantities, dict(zip(quantities, rhats, strict=True)))
    return figure.on_paper(drawn.alt(told), drawn.labelling)


def rank_bands(quantities: Mapping[str, Quantity], level: float = 0.95) -> list[float]:
    """Half the width of the band of each quantity; infinite where the ESS is not known.

    A chain's ECDF of n independent draws differs from that of all m chains with the variance (1 - 1/m) / n of a
    Brownian bridge, whose supremum exceeds c with a probability of about 2 exp(-2 c^2 n) (Kolmogorov).
    """
    values = np.stack(list(quantities.values()))
    chains, draws = values.shape[1:]
    each = (1 - level) / (chains * len(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        independent = np.minimum(bulk_ess(values) / chains, draws)
        widths = np.sqrt(-np.log(each / 2) / 2 * (1 - 1 / chains) / independent)
    return np.nan_to_num(widths, nan=np.inf).tolist()


def rank_shares(
    draws: Float[np.ndarray, "chain draw"], *, bins: int = 20
) -> Float[np.ndarray, "chain bin"]:
    """Rank the draws of one quantity over all chains; return, per chain, bins' heights relative to a flat histogram."""
    ranks = mean_ranks(draws.ravel()).reshape(draws.shape)
    edges = np.linspace(0.5, draws.size + 0.5, bins + 1)
    counts = np.stack([np.histogram(chain, bins=edges)[0] for chain in ranks])
    return counts / (draws.shape[1] / bins)


def draw_traces(
    quantities: Mapping[str, Quantity], diverging: Bool[np.ndarray, "chain draw"] | None = None
) -> Picture:
    """Draw traces on the left and rank histograms on the right, one row per quantity; mark what diverged below."""
    if not quantities:
        raise ArgumentError("`quantities` is empty: give the draws of at least one, by name.")
    rows = len(quantities)
    figure = new_figure(8.0, 1.55 * rows + 0.75)
    grid = figure.subplots(rows, 2, squeeze=False, width_ratios=(1.9, 1.0))
    for row, (name, draws) in enumerate(quantities.items()):
        last = row == rows - 1
        trace, ranks = grid[row]
        rank_share = rank_shares(draws)
        style_axes(trace, y_label=shortened(name, LONGEST), x_label="draw" if last else "")
        style_axes(ranks, y_label="density", x_label="rank among all draws" if last else "")
        ranks.axhline(1.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        edges = np.linspace(0, draws.size, rank_share.shape[1] + 1)
        for chain, (values, heights) in enumerate(zip(draws, rank_share, strict=True)):
            colour, shown = chain_colour(chain), envelope(values)
            trace.plot(shown + 1, values[shown], color=colour, linewidth=0.6, alpha=0.75)
            ranks.stairs(heights, edges, baseline=None, color=colour, linewidth=1.2)
        if diverging is not None and diverging.any():
            places = np.flatnonzero(diverging.any(axis=0)) + 1
            trace.plot(
                places,
                np.zeros(len(places)),
                "|",
                color=INK,
                markersize=7,
                transform=trace.get_xaxis_transform(),
                clip_on=False,
            )
        trace.set_xlim(1, max(draws.shape[1], 2))
        trace.locator_params(axis="y", nbins=4)
        ranks.set_xlim(0, draws.size)
        ranks.set_ylim(0, max(2.0, 1.08 * float(rank_share.max())))
        ranks.locator_params(nbins=3)
        for axes in grid[row]:
            axes.tick_params(labelbottom=last)
    add_chain_legend(figure, max(len(draws) for draws in quantities.values()))
    return figure


def envelope(
    values: Float[np.ndarray, " draw"], *, points: int = POINTS_SHOWN
) -> Int[np.ndarray, " point"]:
    """Return the places of the smallest and largest of every few draws, in order.

    All places where there are no more than `points` draws.
    """
    if values.size <= points:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, points // 2 + 1).astype(np.int64)
    places = [
        start + extreme(values[start:stop])
        for start, stop in pairwise(edges)
        for extreme in (np.argmin, np.argmax)
    ]
    return np.unique(np.asarray(places, dtype=np.int64))


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


def traces_in_words(quantities: Mapping[str, Quantity], group: str = "chain") -> str:
    """Say of every quantity where the draws lie; where chains differ, the median of each."""
    sentences = []
    for name, values in quantities.items():
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95], axis=1)
        if len(values) > 1 and np.ptp(middle) >= 0.25 * np.median(high - low):
            medians = ", ".join(map(format_number, middle.tolist()))
            sentences.append(f"{name}: medians by {group} {medians}.")
        else:
            ends = f"{format_number(low.min())} and {format_number(high.max())}"
            centre = format_number(float(np.median(values)))
            sentences.append(f"{name}: around {centre}, between {ends} in 90 % of draws.")
    return " ".join(sentences)
