"""A check that the ranks of a calibration are uniform: differences of ECDFs with the bands that they should stay in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from onebasin.base.checks import checks_arguments
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
    columns = min(COLUMNS, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = new_figure(2.7 * columns + 0.5, 1.9 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    ends = [0.0]
    x = np.concatenate([[0], band.points, [1]])
    low, high = (np.concatenate([ends, s - band.points, ends]) for s in (band.lower, band.upper))
    for place, (name, axes) in enumerate(zip(chosen, grid.ravel(), strict=False)):
        shares = calibration.shares(name)
        ecdf = np.searchsorted(np.sort(shares), band.points, side="right") / len(shares)
        outside = by_name[name].outside
        style_axes(axes)
        axes.fill_between(x, low, high, color=MUTED, alpha=0.25, linewidth=0, step="mid")
        axes.axhline(0, color=MUTED, linewidth=0.8)
        difference = np.concatenate([ends, ecdf - band.points, ends])
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
