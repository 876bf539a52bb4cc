"""Predictive checks: predicted data sets among the observed one.

Densities are drawn, cumulative shares of whole or few numbers, or the share of ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.view import View

from .marginals import density
from .style import ACCENT, INK, Picture, add_legend, new_panels

FEW = 30
"""Observations below which a density says little."""
SHOWN = 50
"""Predicted data sets that are drawn."""
VARIABLES = 4
"""Predicted variables that are drawn at most, where a posterior has several."""


@dataclass(frozen=True, eq=False)
class PredictedAndObserved:
    """A variable's observed values, and as many predicted in every data set."""

    name: str
    observed: Float[np.ndarray, " obs"]
    predicted: Float[np.ndarray, "draw obs"]

    @property
    def is_binary(self) -> bool:
        """Tell whether the share of ones is drawn: cumulative shares of two numbers would be two flat lines."""
        return bool(np.isin(self.observed, (0, 1)).all() and np.isin(self.predicted, (0, 1)).all())

    @property
    def is_stepped(self) -> bool:
        """Tell whether cumulative shares are drawn."""
        whole = np.array_equal(self.observed, np.round(self.observed))
        return whole or self.observed.size < FEW


def draw_checks(checks: Mapping[str, PredictedAndObserved]) -> Picture:
    """Draw one panel per check, by title."""
    figure, panels = new_panels(
        list(checks),
        columns=2,
        panel_size=(3.9, 2.4) if len(checks) > 1 else (5.8, 2.7),
        margin=(0.3, 0.5),
        x_label="",
        y_label="",
        share_axes=False,
    )
    for axes, check in zip(panels, checks.values(), strict=True):
        if check.is_binary:
            _draw_shares(axes, check)
            continue
        every = max(1, -(-len(check.predicted) // SHOWN))
        # No single outlier may hide the range of the observed values and most predicted ones.
        ends = np.quantile(check.predicted, [0.001, 0.999])
        low = min(float(check.observed.min()), float(ends[0]))
        high = max(float(check.observed.max()), float(ends[1]))
        margin = 0.04 * (high - low) or 1.0
        low, high = low - margin, high + margin
        for place, values in enumerate(check.predicted[::every]):
            label = f"{len(check.predicted[::every])} predicted data sets" if place == 0 else None
            x, y = _curve(values, check.is_stepped, low, high)
            axes.plot(x, y, color=ACCENT, linewidth=0.6, alpha=0.35, label=label)
        x, y = _curve(check.observed, check.is_stepped, low, high)
        axes.plot(x, y, color=INK, linewidth=1.6, label="observed")
        axes.set_xlabel(axes.get_xlabel() or check.name)
        axes.set_ylabel("cumulative share" if check.is_stepped else "density")
        axes.set_xlim(low, high)
        axes.set_ylim(bottom=0)
        axes.locator_params(nbins=5)
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    add_legend(figure, list(handles.values()), list(handles))
    return figure


def _draw_shares(axes: Axes, check: PredictedAndObserved) -> None:
    """Draw how often predicted data sets have each share of ones, and the share that was observed."""
    shares, size = check.predicted.mean(axis=1), check.observed.size
    observed = float(check.observed.mean())
    low, high = min(shares.min(), observed), max(shares.max(), observed)
    step = max(1, round((high - low) * size / 30)) / size
    edges = np.arange(low - step / 2, high + step, step).tolist()
    weights = np.full(shares.size, 1 / shares.size)
    axes.hist(shares, edges, weights=weights, color=ACCENT, alpha=0.5, label="predicted data sets")
    axes.axvline(observed, color=INK, linewidth=1.6, label="observed")
    axes.set_xlabel(f"share of ones in {check.name}")
    axes.set_ylabel("share of data sets")


def _curve(
    values: np.ndarray, stepped: bool, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    if stepped:
        ordered = np.sort(values)
        x = np.repeat(np.concatenate([[low], ordered, [high]]), 2)[1:-1]
        return x, np.repeat(np.arange(len(ordered) + 1) / len(ordered), 2)
    return density(values)


def predictive_checks(views: Mapping[str, View]) -> Picture:
    """Draw what posteriors predict and observed, of variables that they hold both of."""
    checks: dict[str, PredictedAndObserved] = {}
    for name, view in views.items():
        own = checks_of(view)
        several = len(views) > 1 and len(own) > 1
        for check in own:
            title = f"{name}: {check.name}" if several else name if len(views) > 1 else check.name
            checks[title] = check
    titled = checks if len(checks) > 1 else {"": next(iter(checks.values()))}
    return draw_checks(titled).on_paper(check_in_words(checks.values(), checks))


def check_in_words(
    checks: Iterable[PredictedAndObserved], titles: Iterable[str] | None = None
) -> str:
    """Say of every check which mean and spread are predicted and observed, and how many intervals hold the data."""
    told, checks = [], list(checks)
    for title, check in zip(titles or [c.name for c in checks], checks, strict=True):
        low, high = np.quantile(check.predicted, [0.05, 0.95], axis=0)
        inside = 100 * float(((check.observed >= low) & (check.observed <= high)).mean())
        sizes = []
        for word, of in (("mean", np.mean), ("standard deviation", np.std)):
            ends = np.quantile(of(check.predicted, axis=1), [0.05, 0.95])
            sizes.append(
                f"the observed {word} is {format_number(float(of(check.observed)))}, predicted are "
                f"{format_number(float(ends[0]))} to {format_number(float(ends[1]))}"
            )
        share = f"{inside:.0f} % of observations lie in their 90 % intervals"
        told.append(f"{title}: {'; '.join(sizes)}; {share}.")
    return " ".join(told)


COUNTED, MOST_VALUES = 400, 2**22
"""Predicted data sets that are read, and values of them, at most; beyond, every k-th draw is taken."""


def checks_of(view: View) -> list[PredictedAndObserved]:
    """Find variables that are both predicted and observed, all finite, of the same shape."""
    predicted, observed = (
        view.group(name) for name in (schema.POSTERIOR_PREDICTIVE, schema.OBSERVED_DATA)
    )
    found = []
    if predicted is not None and observed is not None:
        for name in map(str, predicted.data_vars):
            if name in observed and observed[name].dtype.kind in "biuf":
                data = np.asarray(observed[name].values, np.float64)
                draws = predicted[name].transpose(*schema.SAMPLE_DIMS, ...)
                most = max(SHOWN, min(COUNTED, MOST_VALUES // max(data.size, 1)))
                every = max(1, -(-draws.shape[0] * draws.shape[1] // most))
                some = draws[:, ::every].values
                if some.shape[2:] == data.shape and data.size:
                    flat = some.reshape(-1, data.size).astype(np.float64)
                    if np.isfinite(data).all() and np.isfinite(flat).all():
                        found.append(PredictedAndObserved(name, data.ravel(), flat))
    if not found:
        kept = view.parsed(schema.LEFT_OUT)
        why = kept.get(schema.POSTERIOR_PREDICTIVE) if isinstance(kept, dict) else None
        reason = f" ({str(why).rstrip('.')})" if why else ""
        raise ArgumentError(
            f"`{view.argument}` holds no predicted data with the observed{reason}: keep them in the groups "
            "`posterior_predictive` and `observed_data`, under one name and finite."
        )
    return found[:VARIABLES]
