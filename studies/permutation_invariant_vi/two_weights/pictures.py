"""The figures on the network of two weights: the paper's Figure 4, and what happens over alpha."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.ticker import LogLocator, NullLocator

from onebasin.analysis.figures.style import (
    ACCENT,
    INK,
    MUTED,
    TEXT_SIZE,
    TITLE_SIZE,
    add_legend,
    chain_colour,
    new_figure,
    style_axes,
)
from onebasin.analysis.report import FigureItem

from .gaussian import Approximation
from .measures import TwoWeightResults
from .optima import Case
from .statements import ERRORS
from .truth import log_joint, statistics

MASSES = (0.99, 0.9, 0.5)
"""Probability inside the contours, from the outermost."""
_SHADES = (0.15, 0.4, 0.75)
_COLUMNS, _POINTS = 4, 101
_PLAIN, _SYMMETRISED = chain_colour(1), ACCENT
_LOOKS: Mapping[str, tuple[str, str]] = {
    "mfvi": (_PLAIN, "MFVI"),
    "sgm-exact": (_SYMMETRISED, "SGM, exact"),
    "sgm-infonce": (chain_colour(2), "SGM, InfoNCE"),
}


def contours(results: TwoWeightResults) -> FigureItem:
    """Remake Figure 4: the posterior, the mean field's q, and the symmetrised one's q^G, a column an alpha."""
    alphas = _some(results.settings.alphas)
    rows = ("posterior", "MFVI", "SGM")
    figure = new_figure(1.95 * len(alphas) + 0.5, 1.85 * len(rows) + 0.5)
    panels = figure.subplots(len(rows), len(alphas), squeeze=False)
    for column, alpha in zip(panels.T, alphas, strict=True):
        _draw_column(list(column), results, alpha)
    for axes, row in zip(panels[:, 0], rows, strict=True):
        axes.set_ylabel(f"{row}\nw2", fontsize=TEXT_SIZE, color=INK)
    fitted = "fit with the highest objective" if results.fits else "best approximation"
    return FigureItem(
        figure,
        caption="The paper's Figure 4 remade: regions of highest density with "
        f"{', '.join(f'{mass:.0%}' for mass in reversed(MASSES))} of the probability of the exact posterior, of the "
        f"mean field's q, and of the symmetrised q^G (trained with the exact term), each of the {fitted}, at noise "
        f"{results.settings.noise:g}. Crosses: the two settings of the weights that made the data.",
        alt="Contours over the two weights of the posterior, of MFVI and of symmetrised VI, for several alphas",
    )


def over_alpha(results: TwoWeightResults) -> FigureItem:
    """Draw distances of the weights, divergences, and gains in prediction against alpha."""
    figure = new_figure(10.2, 3.2)
    left, middle, right = figure.subplots(1, 3)
    _draw_separations(left, results)
    _draw_divergences(middle, results)
    _draw_gains(right, results)
    for axes in (left, middle, right):
        axes.set_xscale("log")
        axes.set_xticks(results.settings.alphas, [f"{a:g}" for a in results.settings.alphas])
        axes.xaxis.set_minor_locator(NullLocator())
    handles = {
        label: handle
        for axes in (left, middle)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    add_legend(figure, list(handles.values()), list(handles), columns=6)
    return FigureItem(
        figure,
        caption="Over alpha, at noise "
        f"{results.settings.noise:g} where nothing else is said. Left: how far apart the two means are, over the "
        "truth's mean of |w1 - w2|; lines are the best approximations of each kind, points are fits. Middle: "
        "divergence from the posterior of the mean field, of the mean field symmetrised after training, and of the "
        "one trained so; dotted: log 2, what one of two separate modes costs. Right: by how much symmetrising "
        f"lowers the expected test MSE, mean over {results.settings.data_sets} data sets ± {ERRORS:g} standard errors, "
        "in units of the noise's variance.",
        alt="Separation, KL divergence and gain in expected test MSE against alpha",
    )


def _draw_column(column: list[Axes], results: TwoWeightResults, alpha: float) -> None:
    case = results.fitted_case(alpha)
    plain, sgm = (_shown(results, alpha, method) for method in ("mfvi", "sgm-exact"))
    axis = _axis(case, sgm)
    first, second = axis[:, None], axis[None, :]
    found = statistics(case.problem.points("train"), case.problem.noise)
    densities = (
        log_joint(found, first, second) - case.truth.log_evidence,
        plain.log_density(first, second),
        sgm.log_density(first, second, symmetrised=True),
    )
    for axes, values, colour in zip(column, densities, (INK, _PLAIN, _SYMMETRISED), strict=True):
        _draw_density(axes, axis, values, colour)
        axes.plot([alpha, -alpha], [-alpha, alpha], "x", color=INK, markersize=5)
    column[0].set_title(f"alpha = {alpha:g}", fontsize=TITLE_SIZE, color=INK, fontweight="bold")
    column[-1].set_xlabel("w1", fontsize=TEXT_SIZE, color=INK)


def _draw_separations(axes: Axes, results: TwoWeightResults) -> None:
    style_axes(
        axes, title="distance of the means", x_label="alpha", y_label="relative to the truth"
    )
    found = results.curve
    axes.axhline(1.0, color=MUTED, linewidth=0.8, linestyle=":")
    axes.plot(found.alpha, found.separation["mfvi"] / found.truth, color=_PLAIN, label="MFVI")
    axes.plot(found.alpha, found.separation["sgm"] / found.truth, color=_SYMMETRISED, label="SGM")
    for (alpha, method), scores in results.fits.items():
        values = scores.separation / results.fitted_case(alpha).truth.separation
        colour, label = _LOOKS[method]
        axes.plot(
            [alpha] * len(values), values, "o", color=colour, markersize=3, label=f"fit: {label}"
        )


def _draw_divergences(axes: Axes, results: TwoWeightResults) -> None:
    style_axes(axes, title="divergence from the posterior", x_label="alpha", y_label="KL (nats)")
    found = results.curve
    axes.axhline(np.log(2), color=MUTED, linewidth=0.8, linestyle=":")
    axes.plot(found.alpha, found.kl["mfvi"], color=_PLAIN, label="MFVI")
    axes.plot(
        found.alpha,
        found.kl_symmetrised["mfvi"],
        color=_PLAIN,
        linestyle="--",
        label="MFVI, symmetrised after",
    )
    axes.plot(found.alpha, found.kl_symmetrised["sgm"], color=_SYMMETRISED, label="SGM")
    for (alpha, method), scores in results.fits.items():
        values = scores.kl if method == "mfvi" else scores.kl_symmetrised
        axes.plot([alpha] * len(values), values, "o", color=_LOOKS[method][0], markersize=3)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _draw_gains(axes: Axes, results: TwoWeightResults) -> None:
    style_axes(axes, title="gain in prediction", x_label="alpha", y_label="MSE, MFVI less SGM")
    axes.axhline(0.0, color=MUTED, linewidth=0.8, linestyle=":")
    for place, noise in enumerate(results.settings.noises):
        found = [average for (n, _), average in results.averages.items() if n == noise]
        gains = np.array([average.gain for average in found]) / noise**2
        axes.errorbar(
            [average.alpha for average in found],
            gains[:, 0],
            ERRORS * gains[:, 1],
            color=(_SYMMETRISED, MUTED)[place % 2],
            marker="os^v"[place % 4],
            markersize=3.5,
            linewidth=1,
            label=f"noise {noise:g}",
        )
    axes.legend(frameon=False, fontsize=TEXT_SIZE - 1, labelcolor=INK)


def _draw_density(
    axes: Axes, axis: Float[np.ndarray, " point"], values: np.ndarray, colour: str
) -> None:
    density = np.exp(values)
    levels = [*_levels(density), density.max() * 1.001]
    shades = [to_rgba(colour, shade) for shade in _SHADES]
    axes.contourf(axis, axis, density.T, levels=levels, colors=shades)
    style_axes(axes)
    axes.grid(visible=False)
    axes.set_aspect("equal")
    axes.locator_params(nbins=4)


def _levels(density: Float[np.ndarray, "point point_bis"]) -> list[float]:
    """Densities on the edge of the regions of highest density with these masses."""
    falling = np.sort(density, axis=None)[::-1]
    inside = np.cumsum(falling) / falling.sum()
    return [float(falling[np.searchsorted(inside, mass)]) for mass in MASSES]


def _axis(case: Case, sgm: Approximation) -> Float[np.ndarray, " point"]:
    widest = max(float(np.max(np.abs(q.loc) + 3.2 * q.scale)) for q in (sgm, case.best["mfvi"].q))
    return np.linspace(-widest, widest, _POINTS)


def _shown(results: TwoWeightResults, alpha: float, method: str) -> Approximation:
    """The fit with the highest objective, or the best approximation where there is no fit."""
    name = "mfvi" if method == "mfvi" else "sgm"
    scores = results.fits.get((alpha, method))
    if scores is None:
        return results.fitted_case(alpha).best[name].q
    objective = -(scores.kl if name == "mfvi" else scores.kl_symmetrised)
    return scores.gaussians[int(np.argmax(objective))]


def _some(alphas: tuple[float, ...]) -> list[float]:
    """At most `_COLUMNS` of the alphas, spread evenly, first and last among them."""
    number = min(len(alphas), _COLUMNS)
    places = np.linspace(0, len(alphas) - 1, number).round().astype(int)
    return [alphas[place] for place in places]
