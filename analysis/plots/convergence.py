"""Plots of convergence: autocorrelation, growth of the effective sample size, R-hat of all parameters, energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from onebasin.base.checks import check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.rhat_ess import diagnostics
from onebasin.posteriors.view import Posterior, as_view

from ..diagnostics.result import Diagnosis
from ..diagnostics.verdict import Limits
from ..summaries.sampler import energy_bfmi
from .marginals import Curve, chain_names, density, draw_curves
from .posteriors import Quantity, check_diagnosis, take
from .style import (
    ACCENT,
    CHAIN_COLOURS,
    DASHED,
    LONGEST,
    POINTS_TO_RASTERISE,
    Picture,
    log_scale,
    name_point,
    new_figure,
    shortened,
    style_axes,
)


@checks_arguments
def plot_autocorrelation(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 4,
    lags: int = 100,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Plot the autocorrelation of the worst parameters by lag, for each chain.

    Parameters
    ----------
    posterior, var_names, rows, align, diagnosis : see `traces`
        Same as in `traces`.
    lags : int
        Maximum lag, in draws.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per parameter. The sooner a curve falls to zero, the more information each draw adds.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.autocorrelation(posterior, lags=20)
    """
    check_count("lags", lags)
    drawn = take(posterior, var_names, rows, align=align, diagnosis=diagnosis, worst=True)
    most = min(lags, drawn.view.num_draws - 1)
    told = autocorrelation_in_words(drawn.values, most=most)
    figure = draw_autocorrelation(drawn.values, most)
    return figure.on_paper(drawn.alt(told), drawn.head)


@checks_arguments
def plot_ess(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 4,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Plot how the effective sample size of the worst parameters grows with the number of draws.

    Parameters
    ----------
    posterior, var_names, rows, align, diagnosis : see `traces`
        Same as in `traces`.

    Returns
    -------
    matplotlib.figure.Figure
        Bulk and tail ESS for increasing numbers of draws from all chains. Curves should rise in straight lines and end
        above the dashed limit. A curve that bends down means that chains disagree more the longer they run.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.ess(posterior, var_names="theta")
    """
    drawn = take(posterior, var_names, rows, align=align, diagnosis=diagnosis, worst=True)
    limit = (drawn.diagnosis.limits if drawn.diagnosis else Limits()).least_ess(
        drawn.view.num_chains
    )
    growth = ess_growth(drawn.values)
    told = growth_in_words(growth, limit)
    return draw_growth(growth, limit).on_paper(drawn.alt(told), drawn.head)


@checks_arguments
def plot_rhat(posterior: Posterior, *, diagnosis: Diagnosis | None = None) -> Picture:
    """Plot R-hat against the bulk ESS of every scalar parameter, in one panel.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` accepts.
    diagnosis : Diagnosis, optional
        The result of `diagnose` for this posterior, if you have it, which saves time.

    Returns
    -------
    matplotlib.figure.Figure
        One point per parameter, for aligned draws if `diagnose` shows these. Dashed lines are the limits. Points below
        and to the right of them are fine. The worst parameters are named.

    Raises
    ------
    ValueError
        If the posterior cannot be diagnosed, or if no parameter has an R-hat.

    Examples
    --------
    >>> figure = ob.plot.rhat(posterior)
    """
    view = as_view(posterior)
    check_diagnosis(diagnosis)
    if diagnosis is None:
        from ..diagnostics.diagnose import diagnose  # Imported late, because it loads JAX.

        diagnosis = diagnose(view)
    table = diagnosis.shown[["rhat", "ess_bulk"]].dropna()
    if not len(table):
        raise ArgumentError(
            f"No parameter of `{view.argument}` has an R-hat. Sample with more chains."
        )
    labelling = "aligned" if diagnosis.is_shown_aligned else ""
    limits = diagnosis.limits.rhat, diagnosis.min_ess
    worst = table.sort_values(["rhat", "ess_bulk"], ascending=[False, True])
    bad = (worst["rhat"] > limits[0]) | (worst["ess_bulk"] < limits[1])
    told = (
        f"{len(table)} parameters, {int(bad.sum())} beyond R-hat {limits[0]:g} or ESS {limits[1]:g}. Worst: "
        + "; ".join(
            f"{name}: R-hat {format_number(r, decimals=3)}, bulk ESS {format_number(e, decimals=0)}"
            for name, r, e in worst.head(3).itertuples()
        )
        + "."
    )
    return draw_rhat(worst, bad, limits).on_paper(told, labelling)


NAMED = 6
"""Number of parameters to name in the plot of R-hat and ESS."""


def draw_rhat(worst: pd.DataFrame, bad: pd.Series, limits: tuple[float, float]) -> Picture:
    """Plot the columns `rhat` and `ess_bulk` of sorted parameters, and name the first `bad` ones."""
    figure = new_figure(6.4, 3.6)
    axes = style_axes(figure.subplots(), x_label="bulk ESS", y_label="R-hat")
    for rows, colour in ((worst[~bad], ACCENT), (worst[bad], CHAIN_COLOURS[5])):
        axes.plot(
            rows["ess_bulk"],
            rows["rhat"],
            ".",
            color=colour,
            markersize=5,
            alpha=0.7,
            rasterized=len(worst) > POINTS_TO_RASTERISE,
        )
    axes.axhline(limits[0], **DASHED)
    axes.axvline(limits[1], **DASHED)
    log_scale(axes, "x")
    axes.margins(x=0.12, y=0.12)
    for name, r, ess in worst[bad].head(NAMED).itertuples():
        name_point(axes, shortened(str(name), LONGEST), ess, r)
    return figure


@checks_arguments
def plot_energy(posterior: Posterior, *, diagnosis: Diagnosis | None = None) -> Picture:
    """Plot the energy of HMC and its changes from draw to draw, with the E-BFMI of each chain.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` accepts, with `energy` in `sample_stats`.
    diagnosis : Diagnosis, optional
        The result of `diagnose` for this posterior, if you have it. Its limit for E-BFMI is used.

    Returns
    -------
    matplotlib.figure.Figure
        If the changes vary much less than the energy itself, the sampler explores the tails too slowly.

    Raises
    ------
    ValueError
        If no energy was recorded.

    References
    ----------
    Betancourt 2016, arXiv:1604.00695 (E-BFMI).

    Examples
    --------
    >>> figure = ob.plot.energy(posterior)
    """
    view = as_view(posterior)
    check_diagnosis(diagnosis)
    energy = view.stat(schema.ENERGY)
    if energy is None or not np.isfinite(energy).all() or not np.ptp(energy):
        raise ArgumentError(
            f"The sampler statistic `energy` of `{view.argument}` is missing, constant or not finite. Give a "
            "posterior from HMC or NUTS."
        )
    limit = (diagnosis.limits if diagnosis else Limits()).bfmi
    told = energy_in_words(energy_bfmi(energy), limit)
    return draw_energy(energy).on_paper(told)


def draw_energy(energy: Quantity) -> Picture:
    """Plot the densities of the energy and of its changes."""
    curves = [density(energy - energy.mean()), density(np.diff(energy, axis=1))]
    names = "energy − mean", "change from draw to draw"
    return draw_curves({"": curves}, names, columns=2, height=2.2, x_label="energy (nats)")


def energy_in_words(bfmi: Sequence[float], limit: float) -> str:
    """Describe the E-BFMI of each chain, and name chains below the limit."""
    told = ", ".join(format_number(value, decimals=2) for value in bfmi)
    low = [k for k, value in enumerate(bfmi) if value < limit]
    bad = f"below {limit:g} in chain{'s' * (len(low) > 1)} {', '.join(map(str, low))}"
    return f"E-BFMI by chain: {told}, {bad if low else f'at least {limit:g} in every chain'}."


def draw_autocorrelation(quantities: Mapping[str, Quantity], lags: int) -> Picture:
    """Plot the autocorrelation of every chain by lag, one panel per quantity."""
    panels = {
        name: [(np.arange(lags + 1), chain) for chain in autocorrelation(values, lags)]
        for name, values in quantities.items()
    }
    return draw_curves(
        panels, chain_names(quantities), x_label="lag", y_label="autocorrelation", limit=0.0
    )


def autocorrelation(values: Quantity, lags: int) -> Float[np.ndarray, "chain lag"]:
    """Compute the autocorrelation of each chain up to a lag. It is NaN for a constant chain."""
    centred = values - values.mean(axis=1, keepdims=True)
    size = np.abs(centred).max()
    spectrum = np.abs(np.fft.rfft(centred / (size or 1.0), 2 * values.shape[1])) ** 2
    found = np.fft.irfft(spectrum)[:, : lags + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return found / found[:, :1]


def autocorrelation_in_words(quantities: Mapping[str, Quantity], *, most: int) -> str:
    """Describe, for each quantity, the lag at which its autocorrelation falls below 0.1."""
    told, limit = [], 0.1
    for name, values in quantities.items():
        curves = autocorrelation(values, most)
        mean = np.nan_to_num(curves, nan=1.0).mean(axis=0)  # Constant chains have NaN.
        below = np.flatnonzero(mean < limit)
        if len(below):
            told.append(f"{name}: autocorrelation below {limit:g} from lag {below[0]} on.")
        else:
            last = format_number(float(mean[-1]), digits=2)
            told.append(f"{name}: autocorrelation still {last} at lag {len(mean) - 1}.")
    return " ".join(told)


def ess_growth(quantities: Mapping[str, Quantity]) -> dict[str, tuple[Curve, Curve]]:
    """Compute bulk and tail ESS for increasing numbers of draws."""
    panels = {}
    for name, values in quantities.items():
        ends = np.unique(np.linspace(4, values.shape[1], 12).astype(int))
        found = [diagnostics(values[None, :, :end]) for end in ends]
        bulk, tail = (np.array([getattr(f, w)[0] for f in found]) for w in ("ess_bulk", "ess_tail"))
        panels[name] = (ends * len(values), bulk), (ends * len(values), tail)
    return panels


def growth_in_words(growth: Mapping[str, tuple[Curve, Curve]], limit: float) -> str:
    """Describe bulk and tail ESS of all draws."""
    told = " ".join(
        f"{name}: bulk ESS {format_number(float(bulk[-1]), decimals=0)}, tail ESS "
        f"{format_number(float(tail[-1]), decimals=0)}."
        for name, ((_, bulk), (_, tail)) in growth.items()
    )
    return f"The limit is {format_number(limit, decimals=0)}. {told}"


def draw_growth(growth: Mapping[str, tuple[Curve, Curve]], limit: float) -> Picture:
    """Plot bulk and tail ESS against the number of draws, one panel per quantity."""
    return draw_curves(growth, ("bulk", "tail"), x_label="draws", y_label="ESS", limit=limit)
