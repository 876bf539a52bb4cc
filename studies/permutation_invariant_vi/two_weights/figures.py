"""The figures on the network of two weights: the paper's Figure 4, and what happens over alpha."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from onebasin.analysis.plots import style

from ...lab import Frames, Row, find, rows_of, where
from .design import TwoWeightSettings, WeightsProblem
from .measures import separations
from .posterior import log_density, log_joint, statistics

MASSES = (0.99, 0.9, 0.5)
"""Probability inside the contours, from the outermost."""
_SHADES = (0.15, 0.4, 0.75)
_COLUMNS, _POINTS = 4, 101
_PLAIN, _SYMMETRISED = style.chain_colour(1), style.ACCENT
_LOOKS = {"mfvi": _PLAIN, "sgm-exact": _SYMMETRISED, "sgm-infonce": style.chain_colour(2)}


def contours(frames: Frames) -> Figure:
    """Remake Figure 4: the posterior, the mean field's q, and the symmetrised one's q^G, a column an alpha."""
    settings = TwoWeightSettings.of(rows_of("two_weights", frames)[0])
    number = min(len(settings.alphas), _COLUMNS)
    places = np.linspace(0, len(settings.alphas) - 1, number).round().astype(int)
    alphas = [settings.alphas[place] for place in places]
    rows = ("posterior", "MFVI", "SGM")
    figure = style.new_figure(1.95 * len(alphas) + 0.5, 1.85 * len(rows) + 0.5)
    panels = figure.subplots(len(rows), len(alphas), squeeze=False)
    for column, alpha in zip(panels.T, alphas, strict=True):
        _draw_column(list(column), frames, WeightsProblem(settings, alpha, settings.noise))
    for axes, row in zip(panels[:, 0], rows, strict=True):
        axes.set_ylabel(f"{row}\nw2", fontsize=style.TEXT_SIZE, color=style.INK)
    return figure


def over_alpha(frames: Frames) -> Figure:
    """Draw distances of the weights, divergences, and gains in prediction against alpha."""
    settings = rows_of("two_weights", frames)[0]
    figure = style.new_figure(10.2, 3.2)
    left, middle, right = figure.subplots(1, 3)
    labels = {"x_label": "alpha", "y_label": "relative to the truth"}
    style.style_axes(left, title="distance of the means", **labels)
    left.axhline(1.0, color=style.MUTED, linewidth=0.8, linestyle=":")
    for name, colour, label in (("mfvi", _PLAIN, "MFVI"), ("sgm", _SYMMETRISED, "SGM")):
        apart = [row[name]["separation"] / row["truth"] for row in rows_of("curve", frames)]
        left.plot(frames["curve"]["alpha"], apart, color=colour, label=label)
    for fit in rows_of("weight_fits", frames):
        _draw_fits(left, fit, separations(fit) / fit["truth"], label=f"fit: {fit['label']}")
    _draw_divergences(middle, frames)
    _draw_gains(right, frames)
    for axes in (left, middle, right):
        axes.set_xscale("log")
        axes.set_xticks(settings["alphas"], [f"{a:g}" for a in settings["alphas"]])
        axes.xaxis.set_minor_locator(NullLocator())
    handles = {
        label: handle
        for axes in (left, middle)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    style.add_legend(figure, list(handles.values()), list(handles), columns=6)
    return figure


def _draw_column(column: list[Axes], frames: Frames, problem: WeightsProblem) -> None:
    alpha = problem.alpha
    case = find(frames["cases"], noise=problem.noise, alpha=alpha)
    plain, sgm = (_shown(frames, case, method) for method in ("mfvi", "sgm-exact"))
    ends = [np.abs(q["loc"]) + 3.2 * np.array(q["scale"]) for q in (sgm, case["mfvi"])]
    widest = float(np.max(ends))
    axis = np.linspace(-widest, widest, _POINTS)
    first, second = axis[:, None], axis[None, :]
    found = statistics(problem.points("train"), problem.noise)
    densities = (
        log_joint(found, first, second) - case["log_evidence"],
        log_density(plain["loc"], plain["scale"], first, second),
        log_density(sgm["loc"], sgm["scale"], first, second, symmetrised=True),
    )
    for axes, values, colour in zip(
        column, densities, (style.INK, _PLAIN, _SYMMETRISED), strict=True
    ):
        density = np.exp(values)
        levels = [*_levels(density), density.max() * 1.001]
        shades = [to_rgba(colour, shade) for shade in _SHADES]
        axes.contourf(axis, axis, density.T, levels=levels, colors=shades)
        style.style_axes(axes)
        axes.grid(visible=False)
        axes.set_aspect("equal")
        axes.locator_params(nbins=4)
        axes.plot([alpha, -alpha], [-alpha, alpha], "x", color=style.INK, markersize=5)
    column[0].set_title(
        f"alpha = {alpha:g}", fontsize=style.TITLE_SIZE, color=style.INK, fontweight="bold"
    )
    column[-1].set_xlabel("w1", fontsize=style.TEXT_SIZE, color=style.INK)


def _levels(density: np.ndarray) -> list[float]:
    """Densities on the edge of the regions of highest density with these masses."""
    falling = np.sort(density, axis=None)[::-1]
    inside = np.cumsum(falling) / falling.sum()
    return [float(falling[np.searchsorted(inside, mass)]) for mass in MASSES]


def _draw_divergences(axes: Axes, frames: Frames) -> None:
    labels = {"x_label": "alpha", "y_label": "KL (nats)"}
    style.style_axes(axes, title="divergence from the posterior", **labels)
    axes.axhline(np.log(2), color=style.MUTED, linewidth=0.8, linestyle=":")
    for name, measure, colour, dash, label in (
        ("mfvi", "kl", _PLAIN, "-", "MFVI"),
        ("mfvi", "kl_symmetrised", _PLAIN, "--", "MFVI, symmetrised after"),
        ("sgm", "kl_symmetrised", _SYMMETRISED, "-", "SGM"),
    ):
        values = [row[name][measure] for row in rows_of("curve", frames)]
        axes.plot(frames["curve"]["alpha"], values, dash, color=colour, label=label)
    for fit in rows_of("weight_fits", frames):
        _draw_fits(axes, fit, fit["kl"] if fit["method"] == "mfvi" else fit["kl_symmetrised"])
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _draw_fits(axes: Axes, fit: Row, values: Sequence[float], label: str | None = None) -> None:
    alphas, colour = [fit["alpha"]] * len(values), _LOOKS[fit["method"]]
    axes.plot(alphas, values, "o", color=colour, markersize=3, label=label)


def _draw_gains(axes: Axes, frames: Frames) -> None:
    """Draw by how much symmetrising lowers the expected test MSE, over the noise's variance, with two errors."""
    style.style_axes(
        axes, title="gain in prediction", x_label="alpha", y_label="MSE, MFVI less SGM"
    )
    axes.axhline(0.0, color=style.MUTED, linewidth=0.8, linestyle=":")
    for place, noise in enumerate(frames["cases"]["noise"].unique()):
        cases = where(frames["cases"], noise=noise)
        errors = [np.array([case[k] for k in ("mfvi", "sgm")]) for case in cases["errors"]]
        gains = [(plain - ours) / noise**2 for plain, ours in errors]
        axes.errorbar(
            cases["alpha"],
            [each.mean() for each in gains],
            [2 * each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0 for each in gains],
            color=(_SYMMETRISED, style.MUTED)[place % 2],
            marker="os^v"[place % 4],
            markersize=3.5,
            linewidth=1,
            label=f"noise {noise:g}",
        )
    axes.legend(frameon=False, fontsize=style.TEXT_SIZE - 1, labelcolor=style.INK)


def _shown(frames: Frames, case: Row, method: str) -> Row:
    """The fit with the highest objective, or the best approximation where there is no fit."""
    name, measure = ("mfvi", "kl") if method == "mfvi" else ("sgm", "kl_symmetrised")
    fit = find(frames["weight_fits"], alpha=case["alpha"], method=method)
    if fit is None:
        return case[name]
    best = int(np.argmin(fit[measure]))
    return {"loc": fit["loc"][best], "scale": fit["scale"][best]}
