"""Several posteriors of one model beside a chosen truth: predictions, and weights modulo symmetry.

Convention: distances are to the truth, scores are against labels or targets. The row of the floor is the truth's second
half taken for a posterior of its own and held against its first half (chains, or the draws of a single one): with half
of the draws on either side it is noisier than the rows above it, and what lies near it cannot be told from the truth.
In weight space only the half of the truth that had no part in labels and scales is compared (`analysis.basin`); there
the floor is that half halved again.

It deliberately weighs nothing up: a posterior may predict as the truth does and lie elsewhere, or the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from onebasin.models.checks import check_count
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.models.symmetry.blocks import Symmetry

from ..diagnostics.result import json_safe
from ..posterior.view import network_of
from ..predictive.points import (
    CLASS_DISTANCES,
    CLASS_SCORES,
    REGRESSION_DISTANCES,
    REGRESSION_SCORES,
    Points,
    distances,
    predict_points,
)
from .comparable import check_comparable, stored_points, unlike_weights
from .frame import Basin, fit_basin, halves
from .moments import compare_moments
from .two_sample import two_sample
from .words import Setting, comparison_table, say, warn

if TYPE_CHECKING:
    from ..report import Table

FLOOR = "floor"
"""Name of the row of the truth against itself."""
WEIGHTS = ("energy", "energy_p", "mmd", "mmd_p", "num_draws")
MOMENTS = ("max_abs_z", "max_abs_d", "verdict")

Progress = Callable[[int, int], None]
Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Posteriors beside a truth.

    Attributes
    ----------
    kind
        `classification`, `regression`, or `parameters` where the posteriors are of no network.
    truth
        Name of the posterior that the others are held against.
    table
        One row a posterior, the truth first, and `floor` last. Columns of a classification: agreement, total_variation
        (halved), total_variation_sum (not), accuracy, log_score, calibration_error, brier,
        single_draw_accuracy, mutual_information. Of a regression: mean_distance (root mean square over points,
        in the truth's standard deviations of f), rmse, coverage_50, coverage_95, crps, log_score. Of
        parameters: max_abs_z, max_abs_d and verdict, of `analysis.comparison.compare_moments`. Always:
        energy, energy_p, mmd, mmd_p of `analysis.discrepancy.two_sample`, and num_draws, the draws that these
        are of (for the floor, of its second part). NaN where there is nothing to say.
    notes
        What was compared, in words.
    warnings
        What to beware of, in words.
    """

    kind: str
    truth: str
    table: pd.DataFrame
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def shown(self) -> Table:
        """The table for display, without empty columns."""
        return comparison_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types for JSON, numbers that are not finite as None."""
        rows = [{"posterior": name, **row} for name, row in self.table.to_dict("index").items()]
        fields = ("kind", "truth", "notes", "warnings")
        return json_safe({name: getattr(self, name) for name in fields} | {"posteriors": rows})


def compare(
    posteriors: Mapping[str, xr.DataTree],
    *,
    truth: str,
    x: Any = None,
    y: Any = None,
    weights: bool = True,
    symmetry: Symmetry | None = None,
    var_names: Sequence[str] | None = None,
    permutations: int = 499,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Hold posteriors against one of them.

    Parameters
    ----------
    posteriors : mapping of str to DataTree
        At least two, of the same model and data; of networks also in different parametrisations.
    truth
        The name of the one that the others are held against.
    x : array (obs, in), optional
        Inputs to predict at; by default those that the truth was fitted to and keeps.
    y : array (obs,) or (obs, out), optional
        Labels or targets at `x`; without them nothing is scored.
    weights
        Whether draws are compared in weight space too.
    symmetry : Symmetry, optional
        Modulo what; by default what the truth declares.
    var_names
        Variables whose draws are compared; by default all, which then have to be the same ones.
    permutations
        Behind each p-value.
    seed
        Of permutations, and of the noise of predictions.
    progress
        Called with draws gone through and draws in all, of each alignment.

    Returns
    -------
    Comparison
        Table, and what it means in words.

    Raises
    ------
    TypeError
        If a posterior is no `DataTree`.
    ValueError
        If there are fewer than two posteriors, `truth` is none of them, networks or data differ, there are
        no points to predict at, or points do not fit the network.
    """
    check_count("permutations", permutations)
    _check_names(posteriors, truth)
    trees = {truth: posteriors[truth]} | dict(posteriors)
    check_comparable(trees, truth)
    model = network_of(trees[truth])
    points = _points(trees[truth], model, truth, x, y)
    rows: Rows = {name: {} for name in (*trees, FLOOR)}
    if model is not None and points is not None:
        _predict(rows, trees, truth, model, points, seed)
    basin, obstacles = None, {}
    if weights or model is None:
        basin = fit_basin(trees[truth], symmetry, var_names=var_names, progress=progress)
        obstacles = _obstacles(trees, truth, model, basin)
        compared = {name: tree for name, tree in trees.items() if name not in obstacles}
        aligned = _align(compared, truth, basin, progress)
        if weights:
            _weigh(rows, aligned, truth, basin, permutations, seed)
        if model is None:
            _hold_moments(rows, aligned, truth, tuple(basin.shapes))
    table = _table(rows, model)
    setting = Setting(
        truth=truth,
        targets={name: str(tree.attrs.get("target", "")) for name, tree in trees.items()},
        points=points,
        own_points=x is None,
        rule=basin.alignment.text if basin and basin.alignment else "",
        weighed=weights,
        permutations=permutations,
        obstacles=obstacles,
    )
    return Comparison(_kind(model), truth, table, say(setting, table), warn(setting, table))


def _check_names(posteriors: Mapping[str, xr.DataTree], truth: str) -> None:
    if len(posteriors) < 2:
        raise ValueError(
            f"`posteriors` hold {len(posteriors)}, and a comparison needs two or more: add another."
        )
    if truth not in posteriors:
        raise ValueError(
            f"`truth` is {truth!r}, which is none of the posteriors: choose one of "
            f"{', '.join(posteriors)}."
        )
    if FLOOR in posteriors:
        raise ValueError(
            f"`posteriors` hold one named {FLOOR!r}, as the row of the truth's halves is: rename it."
        )


def _points(
    truth: xr.DataTree, model: BayesianNetwork | None, name: str, x: Any, y: Any
) -> Points | None:
    if x is None and y is not None:
        raise ValueError("`y` is given without `x`: give the inputs that it belongs to.")
    if model is not None:
        return stored_points(truth, model, name) if x is None else Points.of(model, x, y)
    if x is not None:
        raise ValueError(
            f"`x` is given, but `{name}` is of no network that could predict there (its attribute "
            "`model` is empty): leave `x` out."
        )
    return None


def _kind(model: BayesianNetwork | None) -> str:
    if model is None:
        return "parameters"
    return "classification" if model.is_classifier else "regression"


def _predict(
    rows: Rows,
    trees: Mapping[str, xr.DataTree],
    truth: str,
    model: BayesianNetwork,
    points: Points,
    seed: int,
) -> None:
    """Fill in what the posteriors predict, each by a network of its own parametrisation and noise."""
    first, second = halves(trees[truth])
    measured = dict(trees) | {FLOOR: second}
    models = {name: network_of(tree) or model for name, tree in measured.items()}
    found = {n: predict_points(models[n], tree, points, seed=seed) for n, tree in measured.items()}
    for name, predicted in found.items():
        rows[name] |= predicted.scores
        if name != truth:
            whole = name != FLOOR
            against = found[truth] if whole else predict_points(model, first, points, seed=seed)
            rows[name] |= distances(predicted, against, classifier=model.is_classifier)


def _obstacles(
    trees: Mapping[str, xr.DataTree], truth: str, model: BayesianNetwork | None, basin: Basin
) -> dict[str, str]:
    """Why the weights of some posteriors cannot be compared with the truth's, by name."""
    found = {}
    for name, tree in trees.items():
        if name == truth:
            continue
        other = network_of(tree)
        why = unlike_weights(model, other) if model and other else ""
        try:
            basin.check(tree)
        except ValueError as error:
            if model is None:
                raise ValueError(f"`{name}`: {error}") from error
            why = why or str(error)
        if why:
            found[name] = why
    return found


def _align(
    trees: Mapping[str, xr.DataTree], truth: str, basin: Basin, progress: Progress | None
) -> dict[str, xr.DataTree]:
    """Bring posteriors into the basin; of the truth the half that had no part in it."""
    aligned = {}
    for name, tree in trees.items():
        try:
            aligned[name] = basin.align(basin.rest if name == truth else tree, progress=progress)
        except ValueError as error:
            raise ValueError(f"`{name}`: {error}") from error
    return aligned


def _weigh(
    rows: Rows,
    aligned: Mapping[str, xr.DataTree],
    truth: str,
    basin: Basin,
    permutations: int,
    seed: int,
) -> None:
    """Fill in the distances in weight space."""
    samples = {name: basin.sample(tree) for name, tree in aligned.items()}
    pairs = {name: (samples[truth], other) for name, other in samples.items() if name != truth}
    first, second = (basin.sample(half) for half in halves(aligned[truth]))
    for name, pair in (pairs | {FLOOR: (first, second)}).items():
        found = two_sample(*pair, permutations=permutations, seed=seed)
        rows[name] |= {column: getattr(found, column) for column in WEIGHTS[:-1]}
        rows[name]["num_draws"] = len(pair[1])
    rows[truth]["num_draws"] = len(samples[truth])


def _hold_moments(
    rows: Rows, aligned: Mapping[str, xr.DataTree], truth: str, names: tuple[str, ...]
) -> None:
    """Fill in how far means lie apart."""
    for name, tree in aligned.items():
        if name != truth:
            found = compare_moments(aligned[truth], tree, var_names=names)
            rows[name] |= {column: getattr(found, column) for column in MOMENTS}


def _table(rows: Rows, model: BayesianNetwork | None) -> pd.DataFrame:
    columns: tuple[str, ...] = MOMENTS
    if model is not None and model.is_classifier:
        columns = (*CLASS_DISTANCES, *CLASS_SCORES)
    elif model is not None:
        columns = (*REGRESSION_DISTANCES, *REGRESSION_SCORES)
    index = pd.Index(rows, name="posterior")
    filled = {c: [row.get(c) for row in rows.values()] for c in (*columns, *WEIGHTS)}
    table = pd.DataFrame(filled, index=index)
    return table.astype({c: float for c in table if c != "verdict"})
