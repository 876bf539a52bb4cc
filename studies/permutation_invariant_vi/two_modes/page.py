"""The experiment of one Gaussian between two modes: claims, tables, sentences, figures."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onebasin.analysis.page.page import FigureItem, Note
from onebasin.analysis.plots import style
from onebasin.base.numbers import format_number
from onebasin.base.table import Table

from ...lab import Chapter, Claim, Field, Frames, Row, RowTable, Trial, read
from .measures import MEASURES, MIDWAY

REPORTED = {0.25: 1.25, 0.5: 2.5, 1.0: 5.0, 2.0: 10.0}
"""Thresholds that the paper's plots are said to show, by sigma; its text, as we have it, has lost them."""
SHOWN = (1.0, 2.0, 2.3, 2.5, 2.75, 3.0, 3.5, 4.5)
"""Ratios of alpha to sigma in the table of optima, where they were computed."""

_BELOW = (
    "[For alpha below a threshold], the optimization results are in fact mean-seeking in the sense that [mu*] is a "
    "mid-point interpolation between [the modes]."
)
_ABOVE = "Only for [alpha above the threshold], the behavior becomes mode-seeking."
_SCALES = (
    "We empirically find that the threshold for mode-seeking behavior scales with the standard deviation of [the] "
    "mixture components."
)
_WIDER = (
    "[Interpolating] solutions have higher variance than each of the mixture components, suggesting uncertainty may "
    "be overestimated."
)
_TEXT = (
    "A Gaussian q is fitted by reverse KL to p = ½ N(−α u, σ² I) + ½ N(α u, σ² I) in the plane (section 3, Figure 3, "
    "Appendix A). α is half the distance between the modes: only then is ||μ*|| / α one at a mode.\n\n"
    "Two ways. Every optimum lies on the line through the modes and has the target's spread across it, which leaves "
    "a mean and a standard deviation: their KL is computed by quadrature and all its stationary points are followed. "
    "And the paper's way: points of q are drawn at every step, and mean and full covariance go down the gradient of "
    "the sampled KL, from a mode. KL does not change when q and p are stretched alike, so that only α / σ matters.\n\n"
    "There are three thresholds to be told apart. Below the first there is no optimum but the midpoint: whatever a "
    "descent starts from, it ends there. Above it there is an optimum near each mode as well, and an exact descent "
    "from a mode stays: this is the threshold that the paper's experiment measures. Up to the second the midpoint "
    "still has the lower KL: a Gaussian that sits midway is then no failure of the descent but the best of its "
    "family. The third does not exist: the midpoint is a local optimum at every α, so that a descent that starts "
    "near it stays there however far apart the modes are.\n\n"
    "A midpoint's q is wider than a component, and narrower than p itself is along the line."
)


def chapter(frames: Frames) -> Chapter | None:
    """Lay out the part of the page; None where the experiment failed."""
    if not read("thresholds", frames):
        return None
    appears, better = (_by_sigma(frames["thresholds"], name) for name in ("vanishing", "switching"))
    calm, *_, rough = sorted(frames["ways"], key=lambda way: way["noise"])
    note = Note(
        "Thresholds of 1.25, 2.5, 5 and 10 at σ = 0.25, 0.5, 1 and 2 are reported for the paper, that is 5 σ. With α "
        f"as half the distance 5 σ is far above all of them: from {format_number(appears)} σ on a careful descent "
        "from a mode stays there. As a distance between the modes, 5 σ lies between the two exact ones, "
        f"{2 * appears:.2f} σ, where a mode's optimum appears, and {2 * better:.2f} σ, where it becomes the better "
        "one. To two digits neither is 5.0. Rough steps can knock a descent out of an optimum that is there, which "
        f"raises the threshold: as a distance, it is between {_say(rough)}, and between {_say(calm)}. Stopping "
        "early lowers it. The paper's numbers of samples and steps and its rate are missing from our text of it.",
        title="Which number is the threshold?",
    )
    drawn = (note, figure_three(frames), appendix(frames))
    return Chapter("One Gaussian between two modes", _TEXT, TABLES, drawn)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in two sentences."""
    thresholds = read("thresholds", frames)
    if not thresholds:
        return
    appears, better = _by_sigma(thresholds, "vanishing"), _by_sigma(thresholds, "switching")
    ends = np.array([_bracket(row) for row in thresholds])
    low, high = ends[:, 0].min(), ends[:, 1].max()
    excess = []  # KL of a descent's end above that of the optimum on its side of the threshold
    for row in frames["descents"]:
        at = (_at(frames, row["sigma"], b, row["ratio"]) for b in ("mode", "midpoint"))
        best = next(found for found in at if found)
        excess.append(max(row["divergence"]) - best["divergence"])
    yield (
        f"A Gaussian fitted by reverse KL to two modes ±α sits midway below α = {appears:.4f} σ (a distance of "
        f"{2 * appears:.4f} σ), where no other optimum exists; midway stays the better one up to {better:.4f} σ, and "
        "a local optimum at every α."
    )
    yield (
        f"Stochastic descents from a mode change from midway to the mode between {format_number(low)} σ and "
        f"{format_number(high)} σ at every σ tried, and end within {max(excess):.1e} nats of the optimum."
    )


def _say(way: Row) -> str:
    ends = " and ".join(f"{format_number(2 * end)} σ" for end in _bracket(way))
    return f"{ends} with {way['samples']} samples a step and a rate of {way['rate']:g} σ²"


def _sides(frames: Frames, *, above: bool) -> Iterator[Trial]:
    for row in read("thresholds", frames):
        sigma, at = row["sigma"], row["vanishing"] / row["sigma"]
        ends = [d for d in frames["descents"].where(sigma=sigma) if (d["ratio"] > at) == above]
        if ends:
            shift = np.array([d["shift"] for d in ends])
            tried = f"alpha from {ends[0]['ratio']:g} to {ends[-1]['ratio']:g} sigma"
            measured = f"{shift.size} descents, {tried}: {shift.min():.3f} to {shift.max():.3f}"
            holds = (shift > MIDWAY).all() if above else (shift < MIDWAY).all()
            yield Trial(f"sigma {sigma:g}", measured, bool(holds))


def _scaling(frames: Frames) -> Iterator[Trial]:
    rows = read("thresholds", frames)
    if not rows:
        return
    kinds = {
        "quadrature: an optimum near a mode appears": "vanishing",
        "quadrature: it becomes the better one": "switching",
    }
    for where, name in kinds.items():
        ratios = np.array([row[name] / row["sigma"] for row in rows])
        words = f"{ratios.min():.8f} to {ratios.max():.8f} sigma"
        yield Trial(where, words, bool(np.ptp(ratios) < 1e-6) if len(rows) > 1 else None)
    found = [_bracket(row) for row in rows]
    words = ", ".join(f"{low:g} to {high:g}" for low, high in found)
    alike = None if np.isnan(found).any() or len(rows) < 2 else len(set(found)) == 1
    yield Trial("descents from a mode, each sigma", f"{words} sigma", alike)


def _wider(frames: Frames) -> Iterator[Trial]:
    for row in read("thresholds", frames):
        middle = frames["optima"].row(sigma=row["sigma"], branch="midpoint")
        ratios = np.array(middle["ratio"])
        alone = ratios * row["sigma"] < row["vanishing"]
        midway, (first, last) = np.array(middle["determinant"])[alone], ratios[alone][[0, -1]]
        measured = (
            f"{midway[0]:.4f} at alpha = {first:.2g} sigma to {midway[-1]:.2f} at {last:.3g} sigma; of p itself "
            f"{1 + last**2:.2f}"
        )
        yield Trial(f"sigma {row['sigma']:g}", measured, bool((midway > 1).all()))


CLAIMS = (
    Claim(
        "midway below a threshold, though KL is reversed and the start is a mode",
        _BELOW,
        f"every descent below the threshold by quadrature ends with ||mu*|| / alpha under {MIDWAY:g}",
        partial(_sides, above=False),
    ),
    Claim(
        "at a mode above it",
        _ABOVE,
        f"every descent above the threshold by quadrature ends with ||mu*|| / alpha over {MIDWAY:g}",
        partial(_sides, above=True),
    ),
    Claim(
        "the threshold scales with sigma",
        _SCALES,
        "its ratio to sigma is the same at every sigma: to 1e-6 by quadrature, to the grid by descents (whose rate "
        "is in units of sigma squared)",
        _scaling,
    ),
    Claim(
        "interpolating solutions are wider than a component",
        _WIDER,
        "det Sigma is above sigma^4 at every midpoint that is the only optimum",
        _wider,
    ),
)


def _twice(name: str) -> Any:
    return lambda row: 2 * row[name]


def _range(times: Any) -> Any:
    """Write where descents leave their mode, in units of what `times` gives of a row."""
    return lambda row: " to ".join(format_number(times(row) * end) for end in _bracket(row))


THRESHOLDS = RowTable(
    "Thresholds by quadrature and by descents; alpha is half the distance between the modes",
    (
        Field("sigma", "sigma"),
        Field("a mode's optimum appears", "vanishing", digits=5, unit="alpha"),
        Field("a mode's optimum appears", _twice("vanishing"), digits=5, unit="distance"),
        Field("it becomes the better one", "switching", digits=5, unit="alpha"),
        Field("it becomes the better one", _twice("switching"), digits=5, unit="distance"),
        Field("descents from a mode stay", _range(lambda row: row["sigma"]), unit="alpha, between"),
        Field("descents from a mode stay", _range(_twice("sigma")), unit="distance, between"),
        Field("reported for the paper", lambda row: REPORTED.get(row["sigma"])),
    ),
    over="thresholds",
)
_DIGITS = {
    "shift": ("||mu|| / alpha", 4),
    "determinant": ("det Sigma / sigma^4", 3),
    "divergence": ("KL", 4),
}
_KINDS = {"midpoint": "midway", "mode": "near a mode", "ends": "descents, mean"}


def optima_table(frames: Frames) -> Table:
    """Tabulate optima next to the ends of descents, at the sigma nearest 1."""
    sigma = main_sigma(frames) if read("thresholds", frames) else 1.0
    fields = [Field("alpha / sigma", "ratio")]
    for kind, unit in _KINDS.items():
        for name in MEASURES if kind != "midpoint" else MEASURES[1:]:
            heading, decimals = _DIGITS[name]
            fields.append(Field(heading, f"{kind}_{name}", decimals=decimals, unit=unit))
    caption = "Optima by quadrature and ends of descents from a mode; KL in nats; sigma "
    return RowTable(f"{caption}{sigma:g}", tuple(fields), partial(_beside, sigma=sigma))(frames)


def _beside(frames: Frames, *, sigma: float) -> Iterator[Row]:
    for ends in read("descents", frames).where(sigma=sigma, ratio=SHOWN):
        row = {"ratio": ends["ratio"]} | {f"ends_{n}": float(np.mean(ends[n])) for n in MEASURES}
        for branch in ("midpoint", "mode"):
            at = _at(frames, sigma, branch, ends["ratio"])
            row |= {f"{branch}_{n}": at.get(n) for n in MEASURES}
        yield row


def _at(frames: Frames, sigma: float, branch: str, ratio: float) -> dict[str, float]:
    """An optimum's measures at a ratio; nothing where there is no such optimum."""
    found = frames["optima"].row(sigma=sigma, branch=branch)
    if ratio not in found["ratio"]:
        return {}
    return {name: found[name][found["ratio"].index(ratio)] for name in MEASURES}


WAYS = RowTable(
    "Noise raises the threshold that a descent from a mode finds",
    (
        Field("samples", "samples", unit="a step"),
        Field("rate", "rate", unit="of sigma²"),
        Field("steps", "steps"),
        Field("rate over samples", "noise"),
        Field("descents stay", _range(lambda row: 1), unit="alpha / sigma, between"),
        Field("descents stay", _range(lambda row: 2), unit="distance / sigma, between"),
    ),
    over="ways",
)
STOPS = RowTable(
    "Stopping early lowers it: a descent without noise, from a mode",
    (
        Field("steps x rate", "time", unit="of sigma²"),
        Field("descents stay", "ratio", digits=5, unit="alpha / sigma, above"),
        Field("descents stay", _twice("ratio"), digits=5, unit="distance / sigma, above"),
    ),
    over="stops",
)
TABLES = (THRESHOLDS, optima_table, WAYS, STOPS)


def _bracket(row: Row) -> tuple[float, float]:
    """Ratios between which descents leave their mode; NaN on the side where none was tried."""
    low, high = (np.nan if row[end] is None else row[end] for end in ("low", "high"))
    return low, high


def _by_sigma(thresholds: Iterable[Row], name: str) -> float:
    return float(np.mean([row[name] / row["sigma"] for row in thresholds]))


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
    return min(frames["thresholds"].levels("sigma"), key=lambda sigma: abs(np.log(sigma)))


def figure_three(frames: Frames) -> FigureItem:
    """Remake Figure 3: all optima and the ends of descents against alpha, at the sigma nearest 1."""
    sigma = main_sigma(frames)
    figure, panels = _panels()
    at = frames["thresholds"].row(sigma=sigma)
    for axes, name in zip(panels, MEASURES, strict=True):
        for branch, (label, colour, dash) in _LOOKS.items():
            curve = frames["optima"].row(sigma=sigma, branch=branch)
            alphas = sigma * np.array(curve["ratio"])
            axes.plot(alphas, curve[name], dash, color=colour, linewidth=1.3, label=label)
        _draw_ends(axes, frames, sigma, name, (_POINTS, "descents from a mode"))
        for threshold, line in (("vanishing", _DASHES), ("switching", "-.")):
            axes.axvline(at[threshold], color=style.MUTED, linewidth=0.8, linestyle=line)
        axes.set_xlim(0, sigma * frames["optima"].row(sigma=sigma, branch="midpoint")["ratio"][-1])
    for threshold, side, shift in (("vanishing", "right", -3), ("switching", "left", 3)):
        _write(panels[0], format_number(at[threshold]), (at[threshold], 0.3), (shift, 0), ha=side)
    panels[0].set_ylim(-0.05, 1.08)
    panels[1].set_ylim(bottom=0)
    _mark_log_two(panels[2])
    panels[2].set_ylim(-0.05, 1.2)
    style.add_legend(figure, *panels[0].get_legend_handles_labels())
    return FigureItem(
        figure,
        caption="The paper's Figure 3 remade: a Gaussian q fitted by reverse KL to two Gaussians at +α and −α, "
        f"σ = {sigma:g}, against half the distance between them. Lines: all stationary points, "
        "by quadrature. Circles: ends of stochastic descents that start at a mode. Dashed: α at which an optimum near "
        "a mode appears; dash-dotted: at which it becomes the better one. Left: 0 is midway between the modes, 1 at "
        "one of them; circles lie above the line by noise over a small α. Middle: 1 is a component's.",
        alt="Shift of the mean, determinant of the covariance and KL against alpha: midway below 2.41 sigma, where "
        "optima near the modes appear",
    )


def appendix(frames: Frames) -> FigureItem:
    """Remake Appendix A's figure: what a descent from a mode should find, and what it found, for every sigma."""
    figure, panels = _panels()
    sigmas = frames["thresholds"].levels("sigma")
    for place, sigma in enumerate(sigmas):
        near, middle = (frames["optima"].row(sigma=sigma, branch=b) for b in ("mode", "midpoint"))
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
        axes.set_xlim(left=0.8 * min(frames["descents"].levels("ratio")) * min(sigmas))
    _mark_log_two(panels[2])
    style.add_legend(figure, *panels[0].get_legend_handles_labels(), columns=5)
    return FigureItem(
        figure,
        caption="The same for every σ (the paper's Appendix A). Lines: where an exact descent from a mode ends, midway "
        "as long as there is no optimum near the mode. Circles: stochastic descents. The horizontal axis is "
        "logarithmic, so that a threshold in proportion to σ shows as one curve moved by equal steps.",
        alt="Shift, determinant and KL against alpha for four sigmas: the same curves, moved in proportion to sigma",
    )


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
        (sigma * d["ratio"], v) for d in frames["descents"].where(sigma=sigma) for v in d[name]
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
