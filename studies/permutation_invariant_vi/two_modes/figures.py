"""One Gaussian between two modes: the paper's Figure 3, and the same for every sigma (its Appendix A).

Lines are stationary points by quadrature, circles ends of stochastic descents that start at a mode. Dashed: the alpha
at which an optimum near a mode appears; dash-dotted: at which it becomes the better one.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onebasin.analysis.plots import style

from ...lab import Frames, find, where
from .measures import MEASURES

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


def main_sigma(frames: Frames) -> float:
    """Choose the sigma nearest 1, which the main figure and table show."""
    return min(frames["thresholds"]["sigma"], key=lambda sigma: abs(np.log(sigma)))


def figure_three(frames: Frames) -> Figure:
    """Remake Figure 3: all optima and the ends of descents against alpha, at the sigma nearest 1."""
    sigma = main_sigma(frames)
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
    """Remake Appendix A's figure: what a descent from a mode should find, and what it found, for every sigma."""
    figure, panels = _panels()
    sigmas = frames["thresholds"]["sigma"]
    for place, sigma in enumerate(sigmas):
        near, middle = (find(frames["optima"], sigma=sigma, branch=b) for b in ("mode", "midpoint"))
        alone = len(middle["ratio"]) - len(near["ratio"])  # those below the threshold come first
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
    """Draw the ends of descents as circles, one a seed; `look` is their colour and their name in the legend."""
    colour, label = look
    points = [
        (sigma * d["ratio"], v)
        for d in where(frames["descents"], sigma=sigma).to_dict("records")
        for v in d[name]
    ]
    axes.plot(
        *zip(*points, strict=True),
        "o",
        markersize=3.2,
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=0.8,
        label=label,
    )


def _mark_log_two(axes: Axes) -> None:
    """Mark the KL of a q that is one of two distant components."""
    axes.axhline(np.log(2), color=style.MUTED, linewidth=0.8, linestyle=_DOTS)
    _write(axes, "log 2", (0.0, np.log(2)), (4, 3), xycoords=("axes fraction", "data"))


def _write(
    axes: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], **how: Any
) -> None:
    how |= {"fontsize": style.TEXT_SIZE - 1, "color": style.INK}
    axes.annotate(text, at, shift, textcoords="offset points", **how)
