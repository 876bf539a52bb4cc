"""The figures of docs/explanations/exact-cases.md: exact densities, with draws and approximations over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import onebasin as ob
from docs.gallery.explanations import BLUE, GREEN, ORANGE, PINK, STYLE

from . import plain
from .cases import NETWORKS, case
from .methods import Job
from .networks import PLANE, plane_data
from .quadrature import Exact
from .running import path_of, posterior

MASSES = (0.99, 0.9, 0.5)
"""Probability inside the contours, from the outermost."""
SHADES = (0.15, 0.32, 0.55)
POINTS = 400
CHART_COLOURS = {"givens": ORANGE, "givens_seamless": GREEN, "unit_vector": PINK}
SLOPE = 1.5 / math.sqrt(2)
"""W1[1, 1] W2[1] of the teacher: |W1| W2 = 1.5 along (1, 1) / sqrt(2)."""


def hyperbola(folder: Path) -> Figure:
    """Pourzanjani's Figure 1 over the exact density: W1[1, 1] against W2[1], free and with unit norm."""
    with mpl.rc_context(STYLE):
        figure, (free, unit, chart) = _panels(3, 3.1)
        _free(free, folder)
        _unit(unit, folder)
        for axes in (free, unit):
            one = np.linspace(0.2, 3.6, 200)
            axes.plot(one, SLOPE / one, "--", color=PINK, lw=1.1, label="W1[1,1] W2[1] = 1.06")
            axes.set(xlim=(-0.4, 3.1), ylim=(-0.1, 3.6), xlabel="W1[1,1]")
        free.set_ylabel("W2[1]")
        free.legend(loc="upper right", fontsize=7.5, handlelength=1.4)
        _chart(chart, folder)
    return figure


def contours(folder: Path) -> Figure:
    """Gelberg's Figure 4 over the exact density: draws, mean field, and the symmetrised mean field."""
    exact = case("free-two-units").exact
    get = partial(_posterior, folder, "free-two-units", "free")
    with mpl.rc_context(STYLE):
        figure, axes = _panels(3, 2.9)
        for one, title in zip(axes, ("NUTS", "mean-field ADVI", "symmetrised VI"), strict=True):
            _fill(one, exact)
            one.set(title=title, xlabel="W1[1,1]", xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
        axes[0].set_ylabel("W1[1,2]")
        _draws(axes[0], *case("free-two-units").shown(_flat(get("nuts stan"))), ORANGE)
        fit = get("mean-field ADVI numpyro")["variational"]
        _lines(axes[1], _normal(fit["loc"].values, fit["scale"].values), (-3, 3), (-3, 3))
        tree = get("symmetrised VI")
        fit = tree["variational"].to_dataset().isel(chain=ob.approximations.elbo(tree).best)
        q = _normal(fit["loc"].values, fit["scale"].values)
        _lines(axes[2], lambda a, b: (q(a, b) + q(b, a)) / 2, (-3, 3), (-3, 3))
    return figure


def networks(folder: Path) -> Figure:
    """Every parametrisation (rows) and likelihood (columns), with NUTS of every chart over it."""
    words = ("known", "inferred", "predicted", "classes")
    titles = ("noise known", "noise inferred", "noise predicted", "classes")
    with mpl.rc_context(STYLE):
        figure = _figure(8.6, 6.6)
        grid = figure.subplots(3, 4)
        for row, way in zip(grid, ("free", "unit", "skip"), strict=True):
            for axes, word in zip(row, words, strict=True):
                _case(axes, f"{way}-{word}", folder)
        for axes, title in zip(grid[0], titles, strict=True):
            axes.set_title(title)
        for axes, label in zip(grid[:, 0], ("free", "unit norm", "orthogonal skip"), strict=True):
            axes.set_ylabel(f"{label}\n\n{axes.get_ylabel()}")
        handles = [
            grid[1, 0].plot([], [], "o", color=c, ms=4, label=name)[0]
            for name, c in CHART_COLOURS.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def charts(folder: Path) -> Figure:
    """The other constraints, each with NUTS over it."""
    names = {
        "ordered-known": "ordered biases",
        "unit-ordered-known": "unit norm, ordered biases",
        "ordered": "ordered means",
        "interval": "interval (mixture)",
        "simplex": "simplex (mixture)",
        "proportions": "simplex of three",
        "correlation": "Cholesky factor",
        "free-two-units": "two units",
    }
    with mpl.rc_context(STYLE):
        figure = _figure(8.6, 4.6)
        for axes, (name, title) in zip(figure.subplots(2, 4).ravel(), names.items(), strict=True):
            _case(axes, name, folder)
            axes.set_title(title)
    return figure


FIGURES: dict[str, Callable[[Path], Figure]] = {
    "hyperbola": hyperbola,
    "contours": contours,
    "networks": networks,
    "charts": charts,
}


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained", facecolor="none")


def _panels(columns: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = _figure(8.6, height)
    return figure, list(figure.subplots(1, columns))


def _posterior(folder: Path, name: str, chart: str, method: str) -> xr.DataTree:
    return posterior(Job(name, chart, method), folder)


def _flat(tree: xr.DataTree) -> dict[str, np.ndarray]:
    group = tree["posterior"]
    return {str(n): v.values.reshape(-1, *v.shape[2:]) for n, v in group.data_vars.items()}


def _draws(axes: Axes, x: np.ndarray, y: np.ndarray, colour: str) -> None:
    some = np.linspace(0, len(x) - 1, POINTS).astype(int)
    axes.plot(x[some], y[some], "o", color=colour, ms=1.7, mew=0, alpha=0.75, rasterized=True)


def _levels(density: np.ndarray, mass: np.ndarray, masses: Sequence[float]) -> list[float]:
    """Densities on the edges of the regions of highest density with these masses."""
    falling = np.argsort(density, axis=None)[::-1]
    inside = np.cumsum(mass.ravel()[falling]) / mass.sum()
    return [float(density.ravel()[falling[np.searchsorted(inside, m)]]) for m in masses]


def _region(
    axes: Axes, x: np.ndarray, y: np.ndarray, density: np.ndarray, mass: np.ndarray
) -> None:
    levels = [*_levels(density, mass, MASSES), density.max() * 1.001]
    for (low, high), shade in zip(pairwise(levels), SHADES, strict=True):
        axes.contourf(x, y, density.T, levels=[low, high], colors=[BLUE], alpha=shade)


def _fill(axes: Axes, exact: Exact) -> None:
    """Regions of highest density of the first two coordinates."""
    density = exact.marginal(0, 1)
    mass = density * np.outer(exact.weights[0], exact.weights[1])
    _region(axes, exact.nodes[0], exact.nodes[1], density, mass)
    for axis, name in ((0, "set_xlim"), (1, "set_ylim")):
        inside = np.cumsum(mass.sum(axis=1 - axis))
        low, high = np.interp([0.001, 0.999], inside, exact.nodes[axis])
        getattr(axes, name)(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _case(axes: Axes, name: str, folder: Path) -> None:
    """One case: the exact density, and draws in each of its charts."""
    this = case(name)
    _fill(axes, this.exact)
    method = "nuts stan" if name in NETWORKS else "nuts numpyro"
    for chart in this.charts:
        if not path_of(Job(name, chart, method), folder).exists():
            continue
        draws = _flat(_posterior(folder, name, chart, method))
        _draws(axes, *this.shown(draws), CHART_COLOURS.get(chart, ORANGE))
    axes.set(xlabel=this.labels[0], ylabel=this.labels[1])
    axes.locator_params(nbins=4)


def _normal(loc: np.ndarray, scale: np.ndarray) -> Callable[..., np.ndarray]:
    """Density of two independent normals."""
    return lambda a, b: np.exp(
        plain.log_normal(a, loc[0], scale[0]) + plain.log_normal(b, loc[1], scale[1])
    )


def _lines(
    axes: Axes,
    density: Callable[..., np.ndarray],
    x: tuple[float, float],
    y: tuple[float, float],
    masses: Sequence[float] = MASSES,
) -> None:
    """Contours of an approximation."""
    first, second = np.linspace(*x, 301), np.linspace(*y, 301)
    values = density(first[:, None], second[None, :])
    axes.contour(
        first,
        second,
        values.T,
        levels=_levels(values, values, masses),
        colors=ORANGE,
        linewidths=1.1,
    )


def _free(axes: Axes, folder: Path) -> None:
    this, model = case("free-plane"), case("free-plane").target("free").model
    first, other, last = (
        np.linspace(-0.6, 3.4, 121),
        np.linspace(-1, 4.5, 111),
        np.linspace(-0.3, 4, 121),
    )
    a, b, c = (g.ravel() for g in np.meshgrid(first, other, last, indexing="ij"))
    values = {"W1": np.stack([a, b], 1)[:, :, None], "W2": c[:, None, None]}
    pieces = [
        plain.log_joint(
            model, {n: v[s : s + 200_000] for n, v in values.items()}, PLANE, plane_data("known")
        )
        for s in range(0, len(a), 200_000)
    ]
    density = np.exp(np.concatenate(pieces) - this.exact.log_evidence).reshape(121, 111, 121).sum(1)
    _region(axes, first, last, density, density)
    draws = _flat(_posterior(folder, "free-plane", "free", "nuts stan"))
    _draws(axes, draws["W1"][:, 0, 0], draws["W2"][:, 0, 0], ORANGE)
    axes.set_title("free weights")


def _unit(axes: Axes, folder: Path) -> None:
    """By W1[1, 1] = cos t, of which t and -t are two branches, each with the density over |sin t|."""
    exact = case("unit-known").exact
    density = exact.marginal(0, 1)
    cosine, last = np.linspace(-0.35, 0.995, 300), exact.nodes[1]
    total = np.zeros((len(cosine), len(last)))
    for t in (np.arccos(cosine), -np.arccos(cosine)):
        branch = np.stack([np.interp(t, exact.nodes[0], column) for column in density.T], 1)
        total += branch / np.sqrt(1 - cosine**2)[:, None]
    _region(axes, cosine, last, total, total * exact.weights[1])
    draws = _flat(_posterior(folder, "unit-known", "givens", "nuts stan"))
    _draws(axes, draws["W1"][:, 0, 0], draws["W2"][:, 0, 0], ORANGE)
    axes.plot([1 / math.sqrt(2)], [1.5], "x", color=PINK, ms=7, mew=1.6)
    axes.set_title("unit norm")


def _chart(axes: Axes, folder: Path) -> None:
    """The longitude against W2[1], with the mean field in the chart's own coordinates."""
    _fill(axes, case("unit-known").exact)
    fit = _posterior(folder, "unit-known", "givens", "mean-field ADVI numpyro")["variational"]
    q = _normal(fit["loc"].values, fit["scale"].values)

    def density(t: np.ndarray, last: np.ndarray) -> np.ndarray:
        return q(2 * np.arctanh(t / math.pi), last) * 2 * math.pi / (math.pi**2 - t**2)

    _lines(axes, density, (-1, 2.6), (-0.3, 3.2))
    axes.set(title="unit norm: the angle", xlabel="longitude", ylabel="W2[1]")
    axes.plot([], [], color=ORANGE, label="mean-field ADVI")
    axes.plot([math.pi / 4], [1.5], "x", color=PINK, ms=7, mew=1.6)
    axes.legend(loc="upper left", fontsize=7.5, handlelength=1.2)
