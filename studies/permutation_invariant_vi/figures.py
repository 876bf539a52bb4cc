"""The paper's figures: one Gaussian between two modes (3 and Appendix A), and the network of two weights (4).

Lines are stationary points by quadrature. Circles are ends of stochastic descents from a mode. The dashed line marks
the alpha at which an optimum near a mode appears. The dash-dotted line marks the alpha at which it becomes the better
optimum.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from onebasin.analysis.plots import style

from ..lab.study import Frames, Outcomes, Row, find, rows_of, where
from .design import InvariantConfig
from .two_modes import MEASURES
from .two_weights import TwoWeightSettings, WeightsProblem, log_density, log_joint, statistics

_PANEL, _MARGIN = (2.55, 2.5), 0.5
_TITLES = ("shift", "spread", "divergence")
_LABELS = ("||μ*|| / α", "det Σ* / σ⁴", "KL(q* || p), nats")
_LOOKS: Mapping[str, tuple[str, str, str]] = {
    "midpoint": ("optimum midway", style.INK, "-"),
    "mode": ("optimum near a mode", style.ACCENT, "-"),
    "saddle": ("saddle between them", style.MUTED, ":"),
}
_POINTS = style.chain_colour(1)
_DASHES, _DOTS = (0, (5, 3)), (0, (1, 2))


def figure_three(frames: Frames) -> Figure:
    """Draw Figure 3: all optima and the ends of descents against alpha, at the sigma nearest 1."""
    sigma = min(frames["thresholds"]["sigma"], key=lambda sigma: abs(np.log(sigma)))
    figure, panels = _panels()
    at = find(frames["thresholds"], sigma=sigma)
    for axes, name in zip(panels, MEASURES, strict=True):
        for branch, (label, colour, dash) in _LOOKS.items():
            curve = find(frames["optima"], sigma=sigma, branch=branch)
            alphas = sigma * np.array(curve["ratio"])
            axes.plot(alphas, curve[name], dash, color=colour, linewidth=1.3, label=label)
        _draw_ends(axes, frames, sigma, name, (_POINTS, "descents from a mode"))
        for threshold, line in (("vanishing", _DASHES), ("switching", "-.")):
            axes.axvline(at[threshold], color=style.MUTED, linewidth=0.8, linestyle=line)
        axes.set_xlim(
            0, sigma * find(frames["optima"], sigma=sigma, branch="midpoint")["ratio"][-1]
        )
    for threshold, side, shift in (("vanishing", "right", -3), ("switching", "left", 3)):
        _write(panels[0], f"{at[threshold]:.3g}", (at[threshold], 0.3), (shift, 0), ha=side)
    panels[0].set_ylim(-0.05, 1.08)
    panels[1].set_ylim(bottom=0)
    _mark_log_two(panels[2])
    panels[2].set_ylim(-0.05, 1.2)
    style.add_legend(figure, *panels[0].get_legend_handles_labels())
    return figure


def appendix(frames: Frames) -> Figure:
    """Draw the figure of Appendix A: expected and observed ends of descents from a mode, for every sigma."""
    figure, panels = _panels()
    sigmas = frames["thresholds"]["sigma"]
    for place, sigma in enumerate(sigmas):
        near, middle = (find(frames["optima"], sigma=sigma, branch=b) for b in ("mode", "midpoint"))
        alone = len(middle["ratio"]) - len(near["ratio"])  # Ratios below the threshold come first.
        alphas, colour = sigma * np.array(middle["ratio"]), style.chain_colour(place)
        for axes, name in zip(panels, MEASURES, strict=True):
            ends = [*middle[name][:alone], *near[name]]
            axes.plot(alphas, ends, color=colour, linewidth=1.1, label=f"σ = {sigma:g}")
            _draw_ends(axes, frames, sigma, name, (colour, None))
    ticks = [0.125, 0.5, 2, 8]
    for axes in panels:
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlim(left=0.8 * min(frames["descents"]["ratio"]) * min(sigmas))
    _mark_log_two(panels[2])
    style.add_legend(figure, *panels[0].get_legend_handles_labels(), columns=5)
    return figure


def _panels() -> tuple[Figure, list[Axes]]:
    figure = style.new_figure(3 * _PANEL[0] + 0.3, _PANEL[1] + _MARGIN)
    panels = list(figure.subplots(1, 3))
    for axes, title, label in zip(panels, _TITLES, _LABELS, strict=True):
        style.style_axes(axes, title=title, x_label="α, half the distance", y_label=label)
    return figure, panels


def _draw_ends(
    axes: Axes, frames: Frames, sigma: float, name: str, look: tuple[str, str | None]
) -> None:
    """Draw the ends of descents as circles, one per seed; `look` is their colour and their label in the legend."""
    colour, label = look
    points = [
        (sigma * d["ratio"], v)
        for d in where(frames["descents"], sigma=sigma).to_dict("records")
        for v in d[name]
    ]
    circles: dict[str, Any] = {"ms": 3.2, "mfc": "none", "mec": colour, "mew": 0.8}
    axes.plot(*zip(*points, strict=True), "o", label=label, **circles)


def _mark_log_two(axes: Axes) -> None:
    """Mark log 2, the KL of one of two distant components."""
    axes.axhline(np.log(2), color=style.MUTED, linewidth=0.8, linestyle=_DOTS)
    _write(axes, "log 2", (0.0, np.log(2)), (4, 3), xycoords=("axes fraction", "data"))


def _write(
    axes: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], **how: Any
) -> None:
    how |= {"fontsize": style.TEXT_SIZE - 1, "color": style.INK}
    axes.annotate(text, at, shift, textcoords="offset points", **how)


MASSES = (0.99, 0.9, 0.5)  # Probability inside the contours, from the outermost.
_SHADES = (0.15, 0.4, 0.75)
_COLUMNS, _GRID = 4, 101
_PLAIN, _SYMMETRISED = style.chain_colour(1), style.ACCENT


def contours(frames: Frames, settings: TwoWeightSettings) -> Figure:
    """Draw Figure 4: the posterior, q of the mean field, and q^G of the symmetrised one, one column per alpha."""
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


def _draw_column(column: list[Axes], frames: Frames, problem: WeightsProblem) -> None:
    alpha = problem.alpha
    case = find(frames["cases"], noise=problem.noise, alpha=alpha)
    plain, sgm = (_shown(frames, case, method) for method in ("mfvi", "sgm-exact"))
    ends = [np.abs(q["loc"]) + 3.2 * np.array(q["scale"]) for q in (sgm, case["mfvi"])]
    widest = float(np.max(ends))
    axis = np.linspace(-widest, widest, _GRID)
    first, second = axis[:, None], axis[None, :]
    found = statistics(*problem.points("train"), problem.noise)
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
    """Return the densities on the boundaries of the highest-density regions with the masses `MASSES`."""
    falling = np.sort(density, axis=None)[::-1]
    inside = np.cumsum(falling) / falling.sum()
    return [float(falling[np.searchsorted(inside, mass)]) for mass in MASSES]


def _shown(frames: Frames, case: Row, method: str) -> Row:
    """Return the fit with the smallest divergence, or the best approximation if there is no fit."""
    name, measure = ("mfvi", "kl") if method == "mfvi" else ("sgm", "kl_symmetrised")
    fit = find(frames["weight_fits"], alpha=case["alpha"], method=method)
    if fit is None:
        return case[name]
    best = int(np.argmin(fit[measure]))
    return {"loc": fit["loc"][best], "scale": fit["scale"][best]}


def draw_figures(
    config: InvariantConfig, outcomes: Outcomes, frames: Frames
) -> Mapping[str, Figure]:
    """Draw the figures of the experiments that succeeded."""
    drawn: dict[str, Figure] = {}
    if rows_of("thresholds", frames):
        drawn |= {"figure-3": figure_three(frames), "appendix-a": appendix(frames)}
    if rows_of("cases", frames):
        drawn["figure-4"] = contours(frames, config.two_weights)
    return drawn
