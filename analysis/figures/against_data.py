"""Predictions against what was observed: means with intervals of a regression, reliability of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from .picture import Picture
from .style import ACCENT, CHAIN_COLOURS, INK, MUTED, add_legend, new_panels

_OUTSIDE = CHAIN_COLOURS[5]
BINS = 10


@dataclass(frozen=True, eq=False)
class Intervals:
    """Predictive means and central intervals, and what was observed."""

    mean: Float[np.ndarray, " obs"]
    low: Float[np.ndarray, " obs"]
    high: Float[np.ndarray, " obs"]
    observed: Float[np.ndarray, " obs"]

    @property
    def inside(self) -> Bool[np.ndarray, " obs"]:
        """Whether what was observed lies in its interval."""
        return (self.low <= self.observed) & (self.observed <= self.high)


@dataclass(frozen=True, eq=False)
class Reliability:
    """How sure a classifier is of its most probable class, and how often that class is right."""

    confidence: Float[np.ndarray, " obs"]
    right: Bool[np.ndarray, " obs"]

    def in_bins(
        self, bins: int = BINS
    ) -> tuple[Float[np.ndarray, " bin"], Float[np.ndarray, " bin"], np.ndarray]:
        """Mean confidence, accuracy and number of observations, in bins of as many observations each."""
        groups = np.array_split(np.argsort(self.confidence, kind="stable"), bins)
        groups = [group for group in groups if len(group)]
        means = [(self.confidence[g].mean(), self.right[g].mean()) for g in groups]
        confidence, accuracy = np.asarray(means).T
        return confidence, accuracy, np.asarray([len(g) for g in groups])


def draw_intervals(found: Mapping[str, Intervals], *, label: str) -> Picture:
    """Draw a panel a posterior: intervals over what was observed, and the line where both agree."""
    figure, panels = new_panels(
        list(found),
        columns=3,
        panel_size=(2.9, 2.7) if len(found) > 1 else (4.6, 3.4),
        margin=(0.4, 0.5),
        x_label=f"observed {label}",
        y_label=f"predicted {label}",
    )
    for axes, one in zip(panels, found.values(), strict=True):
        ends = [float(one.observed.min()), float(one.observed.max())]
        axes.plot(ends, ends, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), label="equal")
        for chosen, colour, words in (
            (one.inside, ACCENT, "95 % interval"),
            (~one.inside, _OUTSIDE, "95 % interval that misses"),
        ):
            axes.vlines(
                one.observed[chosen],
                one.low[chosen],
                one.high[chosen],
                color=colour,
                linewidth=1.0,
                alpha=0.6,
                label=words,
            )
        axes.plot(one.observed, one.mean, "o", color=INK, markersize=2.5, label="mean")
        axes.locator_params(nbins=5)
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=2)
    return figure


def draw_reliability(found: Mapping[str, Reliability]) -> Picture:
    """Draw a panel a posterior: accuracy over confidence, with 95 % intervals, and the line where both agree."""
    figure, panels = new_panels(
        list(found),
        columns=3,
        panel_size=(2.9, 2.7) if len(found) > 1 else (4.6, 3.4),
        margin=(0.4, 0.5),
        x_label="probability of the most probable class",
        y_label="share of cases in which it is right",
    )
    for axes, one in zip(panels, found.values(), strict=True):
        confidence, accuracy, count = one.in_bins()
        low, high = _interval(accuracy, count)
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), label="equal")
        axes.vlines(confidence, low, high, color=ACCENT, linewidth=1.2, alpha=0.6)
        axes.plot(
            confidence, accuracy, "o-", color=ACCENT, linewidth=1.2, markersize=4, label="accuracy"
        )
        least = min(float(confidence.min()), float(low.min()))
        axes.set_xlim(max(0.0, float(confidence.min()) - 0.05), 1.02)
        axes.set_ylim(max(0.0, least - 0.05), 1.02)
        axes.locator_params(nbins=5)
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=2)
    return figure


def _interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """About a 95 % interval of shares (Agresti and Coull 1998): two standard errors, of four more cases."""
    middle = (share * count + 2) / (count + 4)
    error = 2 * np.sqrt(middle * (1 - middle) / (count + 4))
    return np.maximum(middle - error, 0.0), np.minimum(middle + error, 1.0)
