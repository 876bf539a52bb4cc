"""A check that the ranks of a calibration are uniform: differences of ECDFs with the bands that they should stay in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from onebasin.base.arguments import checks_arguments
from onebasin.base.errors import ArgumentError, ArgumentTypeError

from .style import ACCENT, MUTED, Picture, literal, new_figure, style_axes

MOST = 12
"""Panels where nothing is asked for."""
COLUMNS = 3


@runtime_checkable
class Calibrated(Protocol):
    """The result of `calibrate`, as far as it is drawn."""

    @property
    def names(self) -> tuple[str, ...]:
        """The test quantities."""

    @property
    def off(self) -> tuple[Any, ...]:
        """Each of them with name, p-value and whether it is outside, the most improbable first."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words."""

    def shares(self, name: str) -> np.ndarray:
        """Take where the truths lie among the draws, of one quantity."""

    def band(self) -> Any:
        """Points, and the lower and upper side of the band that they all share."""


@checks_arguments
def plot_calibration(
    calibration: Calibrated, *, quantities: Sequence[str] | None = None
) -> Picture:
    """Draw the ranks that `calibrate` found: a panel a test quantity, with its band.

    Parameters
    ----------
    calibration : Calibration
        What `calibrate` returned.
    quantities : sequence of str, optional
        Which of its `names`; by default the 12 whose ranks are furthest from uniform.

    Returns
    -------
    matplotlib.figure.Figure
        The ECDF of the truths' ranks minus that of uniform ones. Above zero in the middle, truths lie low: draws are
        too high. A curve that rises first and then falls says that intervals are too narrow. The bands are
        simultaneous over all points and all quantities of the run.

    Raises
    ------
    TypeError
        If it is not what `calibrate` returned.
    ValueError
        If a quantity is not there, or nothing can be judged.

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
    if not isinstance(calibration, Calibrated):
        raise ArgumentTypeError(
            f"`calibration` must be what `calibrate` returned; got {type(calibration).__name__}."
        )
    by_name = {one.name: one for one in calibration.off}
    if not by_name:
        raise ArgumentError("`calibration` has no simulation to draw: " + calibration.sentences[0])
    chosen = list(by_name)[:MOST] if quantities is None else list(quantities)
    unknown = [name for name in chosen if name not in by_name]
    if unknown or not chosen:
        asked = repr(unknown[0]) if unknown else "nothing"
        raise ArgumentError(
            f"`quantities` asks for {asked}, but the calibration has {', '.join(calibration.names)}."
        )
    band = calibration.band()
    panels = []
    for name in chosen:
        shares = calibration.shares(name)
        ecdf = np.searchsorted(np.sort(shares), band.points, side="right") / len(shares)
        panels.append(Panel(name, band.points, ecdf, by_name[name].outside))
    figure = draw_calibration(panels, band.lower, band.upper)
    return figure.on_paper(" ".join(calibration.sentences))


class Panel(NamedTuple):
    """One quantity: its name, where its ECDF is looked at, the ECDF there, and whether it leaves the band."""

    name: str
    points: Float[np.ndarray, " point"]
    ecdf: Float[np.ndarray, " point"]
    outside: bool


def draw_calibration(
    panels: Sequence[Panel], lower: Float[np.ndarray, " point"], upper: Float[np.ndarray, " point"]
) -> Picture:
    """Draw a panel a quantity, with the band of the ECDF that they share."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(2.7 * columns + 0.5, 1.9 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for place, axes in enumerate(grid.ravel()):
        if place >= len(panels):
            axes.set_visible(False)
            continue
        name, points, ecdf, outside = panels[place]
        x, ends = np.concatenate([[0], points, [1]]), [0.0]
        low, high = (np.concatenate([ends, side - points, ends]) for side in (lower, upper))
        style_axes(axes)
        axes.fill_between(x, low, high, color=MUTED, alpha=0.25, linewidth=0, step="mid")
        axes.axhline(0, color=MUTED, linewidth=0.8)
        difference = np.concatenate([ends, ecdf - points, ends])
        axes.step(x, difference, where="mid", color=ACCENT, linewidth=2.0 if outside else 1.2)
        axes.set_title(literal(f"{name}: outside" if outside else name), fontsize=9, loc="left")
        axes.set_xlim(0, 1)
        if place + columns >= len(panels):
            axes.set_xlabel("share of draws below the truth")
            axes.tick_params(labelbottom=True)
    for axes in grid[:, 0]:
        axes.set_ylabel("ECDF − uniform")
    return figure
