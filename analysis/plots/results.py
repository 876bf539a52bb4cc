"""Plots of results: comparisons, barriers between draws of a network, calibration, ELBO and loss, Pareto k.

The ELBO is in nats, and larger is better. Its first values are often lower by orders of magnitude. So the axis shows
the last two thirds of every trace, and a remark counts the values below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from onebasin.base.checks import check_class, checks_arguments
from onebasin.base.errors import ArgumentError, ArgumentTypeError
from onebasin.base.table import decimals_beside, format_number
from onebasin.posteriors.leave_one_out import (
    leave_one_out,
    names_of,
    no_log_likelihood,
    stored_log_likelihood,
)
from onebasin.posteriors.view import Posterior, as_view

from ..alignment.barriers import Barriers, barriers
from ..compare.comparison import BASELINE, Comparison
from ..summaries.variational import Elbo, elbo
from .marginals import ecdf_less_uniform
from .posteriors import Posteriors, named
from .style import (
    ACCENT,
    CHAIN_COLOURS,
    DASHED,
    INK,
    LONGEST,
    MUTED,
    PAPER,
    POINTS_TO_RASTERISE,
    TEXT_SIZE,
    Picture,
    add_legend,
    chain_colour,
    literal,
    name_point,
    new_figure,
    shortened,
    style_axes,
)

MEASURES = {
    "total_variation": "total variation of predictions",
    "agreement": "agreement of classes",
    "mean_distance": "distance of mean predictions (sds)",
    "max_abs_d": "largest difference of means (sds)",
    "energy": "energy distance of draws",
    "log_score": "log score (nats)",
    "rmse": "RMSE (units of y)",
    "crps": "CRPS (units of y)",
    "coverage_50": "coverage of 50 % intervals",
    "coverage_95": "coverage of 95 % intervals",
    "accuracy": "accuracy",
    "calibration_error": "calibration error",
    "brier": "Brier score",
    "mutual_information": "mutual information (nats)",
    "single_draw_accuracy": "accuracy of one draw",
}
"""Labels of measures, with units."""
_IDEAL = {"coverage_50": 0.5, "coverage_95": 0.95}
"""Ideal values of measures."""
_DEFAULT = {
    "regression": ("mean_distance", "energy", "log_score", "coverage_95"),
    "classification": ("total_variation", "energy", "log_score", "calibration_error"),
    "parameters": ("max_abs_d", "energy"),
}


@checks_arguments
def plot_comparison(comparison: Comparison, *, measures: Sequence[str] | None = None) -> Picture:
    """Plot the result of `compare`: one row per posterior, one panel per measure.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    measures : sequence of str, optional
        Columns of its table; by default distances and, if predictions were scored, scores.

    Returns
    -------
    matplotlib.figure.Figure
        The hollow point in the row of the truth is the baseline: the distance between the two halves of the truth.
        Distances this small are noise. Dashed lines show the baseline, the score of the truth, or the ideal coverage.

    Raises
    ------
    TypeError
        If `comparison` is not a result of `compare`.
    ValueError
        If a measure is not a column of the table, or if there is nothing to plot.

    Examples
    --------
    >>> other = ob.approximations.fit_gaussian(ob.align(posterior).posterior).sample(300)
    >>> comparison = ob.compare({"NUTS": posterior, "Gaussian": other}, truth="NUTS", permutations=99)
    >>> figure = ob.plot.comparison(comparison, measures=["energy"])
    """
    check_class("comparison", comparison, Comparison, remedy="give the result of `compare`")
    table = comparison.table
    known = [name for name in MEASURES if name in table and table[name].notna().any()]
    unknown = [name for name in measures or () if name not in known]
    if unknown:
        raise ArgumentError(
            f"`measures` contains {unknown[0]!r}, but the comparison has only {', '.join(known)}. Choose one of "
            "these measures."
        )
    default = (name for name in _DEFAULT[comparison.kind] if name in known)
    chosen = list(dict.fromkeys(measures or default))
    if not chosen:
        raise ArgumentError(
            "`comparison` has no measures to plot. Call `compare` with weights=True, or with `x` and `y`."
        )
    rows = [str(name) for name in table.index if name != BASELINE]
    figure = _draw(table[chosen], rows, comparison.truth)
    told = []
    for name in chosen:
        values = table[name]
        shown = {row: values[row] for row in rows} | {"the baseline": values.get(BASELINE)}
        numbers = [f"{row} {format_number(v)}" for row, v in shown.items() if pd.notna(v)]
        told.append(f"{MEASURES[name]}: {', '.join(numbers)}.")
    return figure.on_paper(f"Compared with {comparison.truth}. {' '.join(told)}")


def _draw(table: pd.DataFrame, rows: Sequence[str], truth: str) -> Picture:
    """Plot one panel per measure, with posteriors in rows and the truth in dark.

    A hollow point in the row of the truth shows the baseline, the distance between its halves.
    """
    columns = min(2, table.shape[1])
    lines = -(-table.shape[1] // columns)
    figure = new_figure(3.8 * columns + 0.8, lines * (0.32 * len(rows) + 0.8) + 0.35)
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    labels = [f"{shortened(name, LONGEST)} (truth)" if name == truth else name for name in rows]
    for axes, (measure, values) in zip(grid, table.items(), strict=False):
        style_axes(axes, x_label=MEASURES[str(measure)])
        axes.set_yticks(range(len(rows)), [literal(shortened(n, LONGEST + 8)) for n in labels])
        axes.tick_params(axis="y", length=0, labelsize=TEXT_SIZE)
        axes.set_ylim(len(rows) - 0.5, -0.8)
        own, limit = float(values.get(truth, np.nan)), float(values.get(BASELINE, np.nan))
        is_distance = bool(np.isnan(own))
        for place, name in enumerate(rows):
            hollow = is_distance and name == truth
            value = limit if hollow else float(values[name])
            if np.isfinite(value):
                colour = INK if name == truth else ACCENT
                face = "none" if hollow else colour
                axes.plot(value, place, "o", color=colour, markerfacecolor=face, markersize=6)
                axes.annotate(
                    f"{value:.3g}".replace("-", "\N{MINUS SIGN}"),
                    (value, place),
                    (0, 6),
                    textcoords="offset points",
                    ha="center",
                    fontsize=TEXT_SIZE - 2,
                    color=INK,
                    # The opaque background hides the dashed line behind it.
                    bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5},
                )
        marked = _IDEAL.get(str(measure), limit if is_distance else own)
        if np.isfinite(marked):
            axes.axvline(marked, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.margins(x=0.16)
        shown = values[values.notna()]
        if is_distance and shown.min() > 0 and shown.max() > 20 * shown.min():
            axes.set_xscale("log")
            continue
        if is_distance:
            axes.axvline(0.0, color=INK, linewidth=0.6, zorder=1)
        axes.locator_params(axis="x", nbins=5)
    for empty in grid[table.shape[1] :]:
        empty.set_visible(False)
    handles = [Line2D([], [], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))]
    names = ["baseline, score of the truth, or ideal coverage"]
    if table.reindex([truth]).isna().any(axis=None):
        circle = Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="none")
        handles.insert(0, circle)
        names.insert(0, "baseline: distance between the truth's halves")
    add_legend(figure, handles, names, columns=2)
    return figure


_BEFORE, _AFTER = CHAIN_COLOURS[1], ACCENT


def plot_barriers(posterior: Posterior | Barriers) -> Picture:
    """Plot the loss between draws, before and after alignment, and the heights of its barriers.

    Parameters
    ----------
    posterior : Barriers, or posterior
        The result of `barriers`, or a network's posterior, for which `barriers` is called with default arguments.

    Returns
    -------
    matplotlib.figure.Figure
        Left: the rise of the loss above the straight line between its ends, one line per pair. Right: the barrier of
        each pair against the number of transpositions that matched its units.

    Raises
    ------
    ValueError
        In the same cases as `barriers`.

    Examples
    --------
    >>> figure = ob.plot.barriers(ob.networks.barriers(weights, pairs=2, num_points=5))
    >>> len(figure.axes)
    2
    """
    found = posterior if isinstance(posterior, Barriers) else barriers(posterior)
    figure = new_figure(8.0, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    style_axes(
        left,
        x_label="from the first draw to the second",
        y_label="increase in loss (nats per obs.)",
    )
    style_axes(
        right, x_label="transpositions that alignment made", y_label="barrier (nats per obs.)"
    )
    # Move pairs with equal counts apart so that none hides another.
    beside = found.transpositions.astype(np.float64)
    for count in np.unique(found.transpositions):
        same = np.flatnonzero(found.transpositions == count)
        beside[same] += (
            0.6 * (np.arange(len(same)) - (len(same) - 1) / 2) / max(len(found.transpositions), 1)
        )
    for barrier, colour, label in (
        (found.as_they_came, _BEFORE, "as sampled"),
        (found.aligned, _AFTER, "second draw aligned to the first"),
    ):
        lines = left.plot(
            barrier.position, barrier.excess.T, color=colour, linewidth=1.2, alpha=0.8
        )
        lines[0].set_label(label)
        right.plot(beside, barrier.height, "o", color=colour, markersize=5, zorder=3)
    before, after = found.as_they_came.height, found.aligned.height
    right.vlines(beside, after, before, color=MUTED, linewidth=0.7)
    # If heights differ by orders of magnitude, use a logarithmic axis that is linear near zero.
    heights = np.concatenate([before, after])
    known = heights[np.isfinite(heights)]
    top = float(known.max(initial=0.0))
    if top > 0 and float(known.min()) < top / 20:
        near = 10.0 ** np.floor(np.log10(top / 300))
        right.set_yscale("symlog", linthresh=near, linscale=0.4)
        right.set_ylim(bottom=min(0.0, float(known.min())), top=2 * top)
        right.axhline(0.0, color=INK, linewidth=0.6, zorder=1)
    right.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    right.set_xlim(float(beside.min()) - 0.5, float(beside.max()) + 0.5)
    left.axhline(0.0, color=INK, linewidth=0.6, zorder=1)
    add_legend(figure, *left.get_legend_handles_labels())
    return figure.on_paper(found.sentence)


MOST = 12
"""Default number of panels."""
COLUMNS = 3


@checks_arguments
def plot_calibration(calibration: Any, *, quantities: Sequence[str] | None = None) -> Picture:
    """Plot the ranks found by `calibrate`: one panel per test quantity, with a band.

    Parameters
    ----------
    calibration : Calibration
        The result of `calibrate`.
    quantities : sequence of str, optional
        Names of test quantities; by default the 12 whose ranks are furthest from uniform.

    Returns
    -------
    matplotlib.figure.Figure
        The ECDF of the ranks of true values, minus the ECDF of uniform ranks. If the curve is above zero in the middle,
        true values are low compared with the draws, so the draws are too high. If it first rises and then falls,
        intervals are too narrow. The bands are simultaneous over all points and all quantities of the run.

    Raises
    ------
    TypeError
        If `calibration` is not a result of `calibrate`.
    ValueError
        If a quantity is unknown, or if no quantity could be judged.

    Examples
    --------
    >>> def normal(y=None):
    ...     mu = numpyro.sample("mu", dist.Normal(0, 1))
    ...     numpyro.sample("y", dist.Normal(mu, 1).expand([5]), obs=y)
    >>> family = ob.truth.Family.of_numpyro(normal, observed="y")
    >>> settings = ob.Nuts(chains=1, warmup=200, draws=200)
    >>> found = ob.calibrate(family, settings, simulations=50, seed=1)
    >>> figure = ob.plot.calibration(found)
    """
    if not all(hasattr(calibration, name) for name in ("off", "band", "shares")):
        raise ArgumentTypeError(
            f"`calibration` must be the result of `calibrate`; got {type(calibration).__name__}."
        )
    by_name = {one.name: one for one in calibration.off}
    if not by_name:
        raise ArgumentError("`calibration` cannot be plotted. " + calibration.sentences[0])
    chosen = list(by_name)[:MOST] if quantities is None else list(quantities)
    unknown = [name for name in chosen if name not in by_name]
    if unknown or not chosen:
        asked = repr(unknown[0]) if unknown else "nothing"
        raise ArgumentError(
            f"`quantities` must contain quantities of the calibration; got {asked}. Choose from "
            f"{', '.join(calibration.names)}."
        )
    band = calibration.band()
    columns = min(COLUMNS, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = new_figure(2.7 * columns + 0.5, 1.9 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    ends = [0.0]
    x = np.concatenate([[0], band.points, [1]])
    low, high = (np.concatenate([ends, s - band.points, ends]) for s in (band.lower, band.upper))
    for place, (name, axes) in enumerate(zip(chosen, grid.ravel(), strict=False)):
        shares = calibration.shares(name)
        outside = by_name[name].outside
        style_axes(axes)
        axes.fill_between(x, low, high, color=MUTED, alpha=0.25, linewidth=0, step="mid")
        axes.axhline(0, color=MUTED, linewidth=0.8)
        difference = np.concatenate([ends, ecdf_less_uniform(shares, band.points), ends])
        axes.step(x, difference, where="mid", color=ACCENT, linewidth=2.0 if outside else 1.2)
        axes.set_title(literal(f"{name}: outside" if outside else name), fontsize=9, loc="left")
        axes.set_xlim(0, 1)
        if place + columns >= len(chosen):
            axes.set_xlabel("share of draws below the truth")
            axes.tick_params(labelbottom=True)
    for axes in grid.ravel()[len(chosen) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("ECDF − uniform")
    return figure.on_paper(" ".join(calibration.sentences))


ElboTrace = tuple[Float[np.ndarray, " evaluation"], Float[np.ndarray, " evaluation"]]
"""Iterations of one fit at which the ELBO was evaluated, and its values."""
MOST_LINES = 50
"""Largest number of ensemble members whose loss is plotted."""


@checks_arguments
def plot_elbo(posteriors: Posteriors | Elbo | Mapping[str, Elbo]) -> Picture:
    """Plot the ELBO of variational fits against the optimiser's iteration.

    Parameters
    ----------
    posteriors : Elbo, posterior, or mapping of str to these
        A posterior from `advi` or `symmetrised_vi`, or the result of `elbo`, or several by name. Each fit gets a line.

    Returns
    -------
    matplotlib.figure.Figure
        The ELBO in nats; larger is better. Compare only fits of the same model and data. For symmetrised VI, the
        symmetrised ELBO is plotted.

    Raises
    ------
    ValueError
        If a posterior has no recorded ELBO.

    Examples
    --------
    >>> fit = ob.advi(target, iterations=2000, seed=1)
    >>> figure = ob.plot.elbo(fit)
    """
    several = named(posteriors)
    traces: dict[str, ElboTrace] = {}
    for name, given in several.items():
        found = given if isinstance(given, Elbo) else elbo(given)
        for k, values in enumerate(found.trace):
            fit = f"fit {k}" if len(several) == 1 else f"{name}, fit {k}"
            traces[fit if len(found.trace) > 1 else name] = (found.iteration, values)
    told = [elbo_in_words(name, trace) for name, trace in traces.items()]
    return draw_elbo(traces).on_paper(" ".join(told))


def draw_elbo(traces: Mapping[str, ElboTrace]) -> Picture:
    """Plot the ELBO traces of fits."""
    figure = new_figure(7.6, 3.2)
    axes = figure.subplots()
    for place, (iteration, values) in enumerate(traces.values()):
        axes.plot(
            iteration,
            values,
            color=chain_colour(place),
            linewidth=1.1,
            linestyle="-" if place < len(CHAIN_COLOURS) else (0, (4, 2)),
            marker="." if np.size(values) < 40 else "",
        )
    lower, upper = elbo_range(traces)
    hidden = sum(int((values < lower).sum()) for _, values in traces.values())
    style_axes(axes, x_label="iteration", y_label="ELBO (nats)")
    axes.set_ylim(lower, upper)
    if hidden:
        early = "1 early value lies" if hidden == 1 else f"{hidden} early values lie"
        axes.set_title(f"{early} below the axis", loc="right", fontsize=TEXT_SIZE - 1, color=MUTED)
    if len(traces) > 1:
        add_legend(figure, axes.lines, list(traces), columns=3)
    return figure


def elbo_range(traces: Mapping[str, ElboTrace]) -> tuple[float, float]:
    """Return an axis range that shows the last two thirds of every trace, with a margin."""
    late = [values[np.size(values) // 3 :] for _, values in traces.values()]
    values = np.concatenate(late)
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    margin = 0.08 * float(np.ptp(values)) or 1.0
    return float(values.min()) - margin, float(values.max()) + margin


def elbo_in_words(name: str, trace: ElboTrace) -> str:
    """Describe the first and last ELBO."""
    iteration, values = trace
    known = values[np.isfinite(values)]
    if not known.size:
        return f"{name}: all ELBO values are infinite or NaN."
    first, last = format_number(float(known[0])), format_number(float(known[-1]))
    return f"{name}: the ELBO goes from {first} to {last} in {format_number(int(iteration[-1]))} iterations."


@checks_arguments
def plot_khat(loo: Any, *, var_name: str | None = None) -> Picture:
    """Plot the Pareto k of each observation in leave-one-out cross-validation.

    Parameters
    ----------
    loo : ELPDData or posterior
        The result of `ob.loo`, or a posterior with the group `log_likelihood`.
    var_name : str, optional
        The observed variable, if the posterior has several.

    Returns
    -------
    matplotlib.figure.Figure
        One point per observation. Estimates above the dashed limit are unreliable. The worst observations are named.

    Raises
    ------
    ValueError
        If log likelihoods are missing or not finite.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao and Gabry 2024, JMLR 25(72) (Pareto k and its limit).

    Examples
    --------
    >>> figure = ob.plot.khat(ob.loo(posterior))
    """
    if not hasattr(loo, "pareto_k"):
        view = as_view(loo)
        stored = stored_log_likelihood(view, var_name)
        if stored is None:
            raise no_log_likelihood(view, "give the result of `ob.loo(posterior, model=...)`.")
        loo = leave_one_out(stored, view.posterior)
    khat = np.nan_to_num(np.asarray(loo.pareto_k, float).ravel(), nan=np.inf)
    names, limit = names_of(loo.pareto_k), float(loo.good_k)
    told = khat_in_words(khat, names, limit)
    return draw_khat(khat, limit, names).on_paper(told)


def khat_in_words(khat: Float[np.ndarray, " obs"], names: Sequence[str], limit: float) -> str:
    """Describe the largest Pareto k, and count the values above the limit."""
    worst, bad = int(khat.argmax()), int((khat > limit).sum())
    places = decimals_beside(float(khat[worst]), (limit,), 2)
    largest, most = (format_number(float(v), decimals=places) for v in (khat[worst], limit))
    middle = format_number(float(np.median(khat)), decimals=2)
    return (
        f"The largest Pareto k is {largest} ({names[worst]}). {bad} of {khat.size} "
        f"{'is' if bad == 1 else 'are'} above the limit {most}; the median is {middle}."
    )


KHAT_SHOWN = 0.7
"""Smallest upper end of the axis of Pareto k."""
NAMED = 6
"""Largest number of observations to name."""


def draw_khat(khat: Float[np.ndarray, " obs"], limit: float, names: Sequence[str] = ()) -> Picture:
    """Plot the Pareto k of each observation and its limit."""
    figure = new_figure(7.6, 2.3)
    axes = style_axes(figure.subplots(), x_label="observation", y_label="Pareto k")
    places, many = np.arange(len(khat)), len(khat) > POINTS_TO_RASTERISE
    for chosen, colour in ((khat <= limit, ACCENT), (khat > limit, CHAIN_COLOURS[5])):
        shown = np.isfinite(khat) & chosen
        axes.plot(places[shown], khat[shown], ".", color=colour, markersize=4, rasterized=many)
    axes.axhline(limit, **DASHED)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_ylim(top=max(axes.get_ylim()[1], 1.1 * max(limit, KHAT_SHOWN)))
    above = np.flatnonzero(np.isfinite(khat) & (khat > limit))
    for place in above[np.argsort(-khat[above])][: NAMED * bool(names)]:
        name_point(axes, names[place], place, khat[place])
    return figure


def draw_loss(loss: Float[np.ndarray, "member epoch"]) -> Picture:
    """Plot the training loss of up to 50 members of an ensemble."""
    figure = new_figure(7.6, 2.8)
    axes = style_axes(figure.subplots(), x_label="epoch", y_label="loss")
    shown = loss[:MOST_LINES]
    axes.plot(
        np.arange(1, shown.shape[1] + 1),
        shown.T,
        color=ACCENT,
        linewidth=0.8,
        alpha=max(0.25, 1 / len(shown) ** 0.5),
        rasterized=shown.size > POINTS_TO_RASTERISE,
    )
    late = shown[:, shown.shape[1] // 20 :]
    known = late[np.isfinite(late)]
    if known.size and known.min() > 0 and known.max() > 30 * known.min():
        axes.set_yscale("log")
    return figure
