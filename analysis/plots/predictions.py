"""Predictions at new data, over an input or as a row a number; and prior densities next to posterior ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_class, check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import choose_variables, lay_out_columns
from onebasin.posteriors.view import Posterior, View, as_view

from .marginals import draw_forest, intervals, intervals_in_words
from .style import ACCENT, Picture, add_legend, new_panels
from .theme import drawn, labels

_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@checks_arguments
def plot_predictions(
    predictions: Any, *, var_name: str | None = None, x: Any = None, rows: int = 24
) -> Picture:
    """Draw predictions with their central 50 % and 90 % intervals.

    Parameters
    ----------
    predictions : Predictions, DataTree or path
        What `ob.predict` returned, or a tree or file with the group `predictions`.
    var_name : str, optional
        The predicted variable; by default the first one.
    x : str or array (obs,), optional
        The input on the horizontal axis: the name of new data, or its values. By default the only new data that have
        one number for each prediction.
    rows : int
        Predictions that are drawn at most, where there is no such input.

    Returns
    -------
    matplotlib.figure.Figure
        Bands over the input; without one, a row a predicted number. In the units of the data.

    Raises
    ------
    ValueError
        If there are no predictions, no such variable, or `x` has another length.

    Examples
    --------
    >>> found = ob.predict(weights, {"x": np.linspace(-1, 1, 9)[:, None]})
    >>> figure = ob.plot.predictions(found)
    """
    check_count("rows", rows)
    view = as_view(getattr(predictions, "tree", predictions), "predictions")
    held = view.group(schema.PREDICTIONS)
    if held is None or not held.data_vars:
        raise ArgumentError(
            "`predictions` hold no group `predictions`: give what `ob.predict` returned."
        )
    names = tuple(map(str, held.data_vars))
    name = str(choose_variables(names, var_name)[0])
    values = held[name].transpose(*schema.SAMPLE_DIMS, ...)
    label, points = _input(view, values, x)
    if points is None:
        draws = lay_out_columns([values])
        quantities = {n: draws.of(n) for n in draws.names[:rows]}
        return draw_forest(quantities).on_paper(intervals(quantities))
    levels = np.quantile(values.values.reshape(-1, len(points)), _LEVELS, axis=0)
    levels, points = levels[:, np.argsort(points)], np.sort(points)
    figure, (axes,) = new_panels(
        [""], columns=1, panel_size=(5.8, 2.7), margin=(0.3, 0.5), x_label=label, y_label=name
    )
    for place, share in ((0, 90), (1, 50)):
        band = axes.fill_between(
            points, levels[place], levels[-1 - place], color=ACCENT, alpha=0.25
        )
        band.set_label(f"{share} % of draws")
    axes.plot(points, levels[2], color=ACCENT, linewidth=1.4, label="median")
    add_legend(figure, *axes.get_legend_handles_labels())
    ends = [f"{label} {format_number(float(points[end]))}" for end in (0, -1)]
    return figure.on_paper(
        f"{name} over {label}. {intervals_in_words(ends, *levels[[0, 2, 4]][:, [0, -1]].tolist())}"
    )


@checks_arguments
def plot_prior(
    prior: xr.DataTree,
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 12,
) -> Picture:
    """Draw the prior density of each parameter next to its posterior one.

    Parameters
    ----------
    prior : DataTree
        What `ob.prior` returned.
    posterior : DataTree, path, or what a sampler returned
        A posterior of the same model, in any form that `ob.diagnose` takes.
    var_names : str or sequence of str, optional
        The variables to draw; by default those of both.
    rows : int
        The number of scalar parameters at most.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a parameter, by ArviZ's `plot_prior_posterior`.

    Raises
    ------
    TypeError, ValueError
        If `prior` is no tree or has no group `prior`, a variable is unknown, or none is in both.

    Examples
    --------
    >>> figure = ob.plot.prior(ob.prior(target, draws=200), posterior, var_names="mu")
    """
    from arviz_plots import plot_prior_posterior

    check_count("rows", rows)
    check_class("prior", prior, xr.DataTree, remedy="give what `ob.prior` returned")
    if schema.PRIOR not in prior.children:
        raise ArgumentError("`prior` has no group `prior`: give what `ob.prior` returned.")
    view, held = as_view(posterior), prior[schema.PRIOR].to_dataset()
    both = tuple(name for name in view.variables if name in held)
    chosen = choose_variables(both, var_names)
    draws = view.draws(chosen)
    before = lay_out_columns([held[name].transpose(*schema.SAMPLE_DIMS, ...) for name in chosen])
    shown = [name for name in draws.names if name in before.names][:rows]
    if not shown:
        raise ArgumentError("`prior` and `posterior` have no variable in common: give one model's.")
    given = labels(dict.fromkeys(shown))
    groups = {
        group: xr.Dataset({given[n]: (schema.SAMPLE_DIMS, of.of(n)) for n in shown})
        for group, of in ((schema.PRIOR, before), (schema.POSTERIOR, draws))
    }
    columns = min(len(shown), 4)
    figure = drawn(
        plot_prior_posterior,
        xr.DataTree.from_dict(groups),
        height=2.0 * -(-len(shown) // columns) + 0.4,
        col_wrap=columns,
        legend=("prior", "posterior"),
    )
    spreads = ((name, before.of(name).std(), draws.of(name).std()) for name in shown)
    told = "; ".join(f"{n} {format_number(a)}, then {format_number(b)}" for n, a, b in spreads)
    return figure.on_paper(f"Densities before and after the data. Standard deviations: {told}.")


def _input(view: View, values: xr.DataArray, x: Any) -> tuple[str, np.ndarray | None]:
    """Return the name and the values of the input to draw over; None where there is none."""
    size = int(np.prod(values.shape[2:]))
    data = view.group(schema.PREDICTIONS_CONSTANT_DATA)
    known = {} if data is None else {str(n): v.values for n, v in data.data_vars.items()}
    if x is None:
        fitting = [
            n for n, v in known.items() if v.ndim and v.size == size > 1 and n != values.name
        ]
        x = fitting[0] if len(fitting) == 1 else None
    if x is None:
        return "", None
    if isinstance(x, str) and x not in known:
        raise ArgumentError(
            f"`x` is {x!r}, and the new data are {', '.join(known) or 'not kept'}: name one of them, or give values."
        )
    label, points = (x, known[x]) if isinstance(x, str) else ("x", np.asarray(x))
    if points.size != size:
        raise ArgumentError(f"`x` has {points.size} numbers for {size} predictions: give one each.")
    return label, points.ravel().astype(float)
