"""Report sections on predictive checks, leave-one-out prediction and prior sensitivity."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.base.table import Column, Flag, Row, Table, TableCell, decimals_beside, format_number
from onebasin.posteriors import schema
from onebasin.posteriors.leave_one_out import leave_one_out, names_of
from onebasin.posteriors.view import View

from ..page import FigureItem, Note, Part, Section
from ..plots.bands import PLACES, Curve, band_in_words, draw_predictive_bands, network_bands
from ..plots.posteriors import Subject, listed
from ..plots.predictive import check_in_words, checks_of, draw_checks
from ..plots.results import draw_khat, khat_in_words

MOST_VALUES = 2**22
"""Largest number of values read from a group. Only every k-th draw of a larger group is read."""
VARIABLES = 3
"""Largest number of variables to show."""
BANDS = 8
"""Largest number of posteriors for which bands are plotted."""
SENSITIVE = 20
_STATISTICS: dict[str, Any] = {"mean": np.mean, "sd": np.std, "smallest": np.min, "largest": np.max}


def predictions(subject: Subject) -> Section:
    """Show predictive checks, PSIS-LOO and prior sensitivity, and name missing groups."""
    band = bands({subject.name: subject.view})
    parts: list[Part] = [band] if band is not None else []
    if (points := subject.diagnosis.points) is not None:
        parts.append(points.as_table(subject.diagnosis.verdict))
    parts += _checks(subject)
    if (likelihood := subject.view.group(schema.LOG_LIKELIHOOD)) is not None:
        for name in list(map(str, likelihood.data_vars))[:VARIABLES]:
            parts += _left_out(subject, name, likelihood[name])
    parts += _sensitivity(subject)
    if missing := _missing(subject):
        parts.append(missing)
    return Section("Predictions against data", parts=tuple(parts))


def bands(views: Mapping[str, View]) -> FigureItem | None:
    """Plot predictive bands of regression networks with one input. Return None for other posteriors."""
    drawn = {name: view for name, view in views.items() if _can_be_drawn(view)}
    if not drawn:
        return None
    first = next(iter(drawn.values()))
    x, y = np.asarray(first.x, float)[:, 0], first.y
    places = np.linspace(x.min(), x.max(), PLACES)
    made = network_bands(dict(list(drawn.items())[:BANDS]), places)
    data = Curve(x, np.asarray(y, float).reshape(len(x), -1)[:, 0]) if y is not None else None
    return FigureItem(
        draw_predictive_bands(made, data=data),
        caption="Predictions with noise as a function of the input, and the data: mean, 50 % and 95 % bands.",
        alt=" ".join(band_in_words(name, band, data) for name, band in made.items()),
    )


def _can_be_drawn(view: View) -> bool:
    if view.network is None or view.x is None:
        return False
    from onebasin.models.networks.likelihood import Gaussian  # Imported late, because it loads JAX.

    model, x = view.network, view.x
    return (
        not model.is_classifier
        and isinstance(model.likelihood, Gaussian)
        and model.network.in_dim == 1
        and bool(np.isfinite(x).all())
    )


def _missing(subject: Subject) -> str:
    """Name the groups that must be stored for further plots."""
    there = {name for name in _GROUPS if subject.view.group(name) is not None}
    wanted = {
        "predictive checks": (schema.POSTERIOR_PREDICTIVE, schema.OBSERVED_DATA),
        "PSIS-LOO": (schema.LOG_LIKELIHOOD,),
        "power-scaling sensitivity": (schema.LOG_PRIOR, schema.LOG_LIKELIHOOD),
    }
    kept = subject.view.parsed(schema.LEFT_OUT)
    reasons = kept if isinstance(kept, dict) else {}
    lines = []
    for what, groups in wanted.items():
        absent = [name for name in groups if name not in there]
        if absent:
            why = "; ".join(f"{n}: {str(reasons[n]).rstrip('.')}" for n in absent if n in reasons)
            store = f"store {' and '.join(f'`{name}`' for name in absent)}"
            lines.append(f"{what} ({why or store})")
    told = f"Not shown, because the file lacks the required groups: {'; '.join(lines)}."
    return told if lines else ""


_LOGS = (schema.LOG_LIKELIHOOD, schema.LOG_PRIOR)
_GROUPS = (schema.POSTERIOR_PREDICTIVE, schema.OBSERVED_DATA, *_LOGS)


def _checks(subject: Subject) -> Iterator[Part]:
    """Compare predicted data sets and their statistics with the observed data, or say why this is not possible."""
    if any(subject.view.group(name) is None for name in _GROUPS[:2]):
        return
    try:
        checks = checks_of(subject.view)[:VARIABLES]
    except ArgumentError as error:
        yield f"No predictive check: {error}"
        return
    titles = {check.name if len(checks) > 1 else "": check for check in checks}
    told = check_in_words(checks)
    caption = f"Predictive check: the observed data (dark) and data sets predicted by the posterior. {told}"
    yield FigureItem(draw_checks(titles), caption=caption, alt=told)
    rows: list[Row] = []
    for check in checks:
        for word, of in _STATISTICS.items():
            predicted, at = of(check.predicted, axis=1), float(of(check.observed))
            above = float((predicted > at).mean() + 0.5 * (predicted == at).mean())
            low, high = map(float, np.quantile(predicted, [0.05, 0.95]))
            flag: Flag = "warn" if min(above, 1 - above) < 0.01 else ""
            rows.append((f"{word} of `{check.name}`", at, low, high, TableCell(above, flag)))
    columns = (
        "statistic of a data set",
        Column("observed"),
        Column("5 %", unit="predicted"),
        Column("95 %", unit="predicted"),
        Column("share", decimals=2, unit="predicted above"),
    )
    caption = "Statistics of the observed and predicted data. A share near 0 or 1 means that the model does not fit."
    yield Table(columns, tuple(rows), caption)


def _left_out(subject: Subject, name: str, variable: xr.DataArray) -> Iterator[Part]:
    known = subject.diagnosis.parameters["ess_bulk"].dropna()
    efficiency = 1.0  # Effective draws per draw, which PSIS needs.
    if subject.diagnosis.has_chains and not known.empty:
        efficiency = float(min(known.mean() / subject.diagnosis.total_draws, 1.0))
    try:
        values = variable.transpose(*schema.SAMPLE_DIMS, ...)
        most = max(1, -(-values.sizes["draw"] // _affordable(variable)))
        values = values[:, ::most].astype(np.float64).load()
        elpd = leave_one_out(values, subject.view.posterior, relative=efficiency)
    except ArgumentError as error:
        yield f"No PSIS-LOO of `{name}`: {error}"
        return
    khat, limit = np.nan_to_num(np.asarray(elpd.pareto_k).ravel(), nan=np.inf), float(elpd.good_k)
    bad, worst = int((khat > limit).sum()), float(khat.max())
    places = decimals_beside(worst, (limit,), 2)
    rows: tuple[Row, ...] = (
        ("elpd", float(elpd.elpd), float(elpd.se)),
        ("effective parameters", float(elpd.p), None),
        ("observations", khat.size, None),
        (
            TableCell("observations with k-hat > " + format_number(limit, decimals=places)),
            TableCell(bad, "warn" if bad else ""),
            None,
        ),
    )
    every = -(-variable.sizes["draw"] // values.sizes["draw"])
    masked = values[0, 0].size - khat.size
    left = f" {masked} masked observations are left out." if masked else ""
    part = f"{left} Only every {every}th draw is used." if every > 1 else left
    yield Table(
        ("PSIS-LOO", Column("estimate"), Column("standard error")),
        rows,
        f"Leave-one-out log predictive density of `{name}`, in nats. Larger is better.{part}",
    )
    names = names_of(elpd.elpd_i)
    told = khat_in_words(khat, names, limit)
    caption = f"Pareto k for every observation of `{name}`. {told}"
    yield FigureItem(draw_khat(khat, limit, names), caption=caption, alt=told)


_MATTERS = 0.05
"""Sensitivity above which a parameter depends on the prior or likelihood (Kallioinen and others 2024)."""
_STATED = {"lprior", "log_prior"}
"""Names under which a program can store its log prior to define what is scaled."""


def _sensitivity(subject: Subject) -> Iterator[Part]:
    prior, likelihood = map(subject.view.group, (schema.LOG_PRIOR, schema.LOG_LIKELIHOOD))
    if prior is None or likelihood is None:
        return
    from arviz_stats import psense

    scaled = _scaled(prior)
    chosen = _common_draws(subject, prior, likelihood)
    if chosen is None:
        yield ("No power-scaling sensitivity: the groups do not record which draws they contain.")
        return
    if not scaled:
        yield (
            f"No power-scaling sensitivity: the group `{schema.LOG_PRIOR}` does not say which of "
            f"{listed(list(map(str, prior.data_vars)))} are at the top level of the model. Scaling the priors of "
            "latent variables in a hierarchy would flag parameters that are fine. Store only the log density of the "
            "top-level priors, as `lprior`."
        )
        return
    names = subject.worst[: 3 * SENSITIVE]
    posterior = {name: v[:, chosen[0]] for name, v in subject.several(names).items()}
    groups = {schema.POSTERIOR: dataset_of(posterior)}
    for word, group, places in (
        (schema.LOG_PRIOR, prior[list(scaled)], chosen[1]),
        (schema.LOG_LIKELIHOOD, likelihood, chosen[2]),
    ):
        others = [dim for dim in group.dims if dim not in schema.SAMPLE_DIMS]
        totals = group.isel(draw=places).astype(np.float64).sum(others, skipna=False)
        groups[word] = totals.transpose(*schema.SAMPLE_DIMS).drop_vars([*totals.coords])
    tree = xr.DataTree.from_dict(groups)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {word: psense(tree, group=word) for word in ("prior", "likelihood")}
    except (ValueError, FloatingPointError) as error:
        yield f"No power-scaling sensitivity: {str(error).splitlines()[0]}"
        return
    numbers = [(n, float(found["prior"][n]), float(found["likelihood"][n])) for n in posterior]
    numbers.sort(key=lambda row: -max(row[1], row[2]))
    rows: list[Row] = []
    for name, of_prior, of_likelihood in numbers[:SENSITIVE]:
        said = TableCell("prior and data may disagree", "warn")
        if of_prior < _MATTERS:
            said = TableCell("as expected")
        elif of_likelihood < _MATTERS:
            said = TableCell("strong prior or weak data", "warn")
        rows.append((f"`{name}`", of_prior, of_likelihood, said))
    yield Table(
        ("parameter", Column("prior", decimals=3), Column("likelihood", decimals=3), "meaning"),
        tuple(rows),
        f"Power-scaling sensitivity, the {len(rows)} largest of {len(numbers)}: how much each parameter changes with "
        f"the weight of the likelihood, or of the priors of {listed(scaled)}. Values of {_MATTERS} or more matter.",
    )
    if any(isinstance(row[3], TableCell) and row[3].flag for row in rows):
        yield Note(
            "Some parameters depend on the prior as much as on the data. Check that this is intended.",
            "warn",
        )


def dataset_of(variables: Mapping[str, np.ndarray]) -> xr.Dataset:
    """Make a dataset of arrays (chain, draw)."""
    return xr.Dataset({name: (schema.SAMPLE_DIMS, values) for name, values in variables.items()})


def _scaled(prior: xr.Dataset) -> tuple[str, ...]:
    """Return the names of the top-level priors, or () if the levels of the model are unknown."""
    names = tuple(map(str, prior.data_vars))
    told = schema.decode(prior.attrs, schema.TOP_LEVEL)
    if isinstance(told, list):
        return tuple(name for name in names if name in told)
    stated = tuple(name for name in names if name in _STATED)
    return stated or (names if len(names) == 1 else ())


def _common_draws(subject: Subject, *groups: xr.Dataset) -> tuple[np.ndarray, ...] | None:
    """Return, for each group, the positions of the draws that all groups share, or None if unknown."""
    numbers = [
        each["draw"].values if "draw" in each.coords else np.arange(each.sizes["draw"])
        for each in (subject.view.posterior, *groups)
    ]
    common = numbers[0]
    for others in numbers[1:]:
        common = common[np.isin(common, others)]
    if len(common) < 4 or any(len(np.unique(each)) < len(each) for each in numbers):
        return None
    most = min(_affordable(variable) for group in groups for variable in group.data_vars.values())
    common = common[:: max(1, -(-len(common) // most))]
    return tuple(np.flatnonzero(np.isin(each, common)) for each in numbers)


def _affordable(variable: xr.DataArray) -> int:
    """Return the number of draws to read from each chain."""
    each = max(1, variable.size // max(variable.sizes["draw"], 1))
    return max(4, MOST_VALUES // each)
