"""The design, 100 points of the teacher and a network like it; and what is measured of its posteriors."""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import xarray as xr

from onebasin.analysis.predictive.heldout import predict_held_out
from onebasin.inference import AdviSettings, NutsSettings
from onebasin.models import NetworkTarget
from onebasin.models.data import Dataset, load_data

from ..against_nuts import agreements, from_nuts
from ..heldout import columns_of
from ..lab import Cell, Frame, Frames, Options, Outcomes
from ..lab.diagnosis import diagnosis_columns
from ..pourzanjani import PARAMETRISATIONS, relu_network

NAME = "relu-teacher"
HIDDEN = 2
QUICK = NutsSettings(chains=2, warmup=300, draws=300)
METHODS = ("nuts", "meanfield", "fullrank")
CHARTS = ("givens", "givens_seamless", "unit_vector")
"""The same constraint in three charts; the last two are sampled only, to show the first one's seam."""
SEAM = 0.1
"""Within this of +-pi, in radians, a longitude counts as lying at the seam."""


@dataclass(frozen=True)
class Config:
    """What is crossed, and by which settings; `seed` is that of the data and of every sampler."""

    seed: int
    engines: tuple[str, ...]
    parametrisations: tuple[str, ...]
    nuts: NutsSettings = field(default_factory=NutsSettings)
    advi: AdviSettings = field(default_factory=AdviSettings)


def configure(options: Options) -> Config:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "splits", "full", "problems")
    return Config(
        seed=options.seed,
        engines=options.engines("both"),
        parametrisations=options.labels(
            "parametrisations", PARAMETRISATIONS, tuple(PARAMETRISATIONS)
        ),
        nuts=options.sampler(QUICK if options.quick else NutsSettings()),
    )


def cells(config: Config) -> tuple[Cell, ...]:
    """List the cells: every parametrisation by NUTS, the paper's also by ADVI."""
    settings = {"nuts": config.nuts, "meanfield": config.advi, "fullrank": config.advi}
    return tuple(
        Cell(parametrisation, method, engine, settings[method], config.seed)
        for parametrisation in config.parametrisations
        for method in METHODS
        for engine in config.engines
        if method == "nuts" or parametrisation not in CHARTS[1:]
    )


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on the training points."""
    data = dataset(config.seed)
    return relu_network(data, HIDDEN, cell.problem).condition(data.x, data.y, name=NAME)


@cache
def dataset(seed: int) -> Dataset:
    """Load the data: 100 training points, 100 held out, and the true function."""
    return load_data(NAME, seed=seed)


def measure(config: Config, outcomes: Outcomes) -> Frames:
    """Measure every cell, and compare those that belong together.

    The frames: `cells`, a row a cell: diagnosis, scores at the held-out points (`bias` and `error` are mean and root
    mean square of the predictive mean less the true function), the share of draws `at_seam` and the `crossings` of the
    seam, and for variational cells the distance from NUTS; and `engines`, a row a parametrisation: the engines' NUTS
    against each other.
    """
    data, rows = dataset(config.seed), []
    test, truth = data.held_out, data.truth
    if test is None or truth is None:
        raise ValueError(f"`{data.name}` has no held-out points or no true function.")
    held_out = {
        cell: predict_held_out(outcomes.tree(cell), target(config, cell).model, test.x, test.y)
        for cell in outcomes
    }
    for cell, predictions in held_out.items():
        miss = predictions.function.mean(axis=(0, 1)) - truth(test.x)
        row = {**cell.factors, **diagnosis_columns(outcomes, cell), **columns_of(predictions)}
        row |= {"bias": miss.mean(), "error": np.sqrt(np.mean(miss**2))}
        row |= dict(zip(("at_seam", "crossings"), seam(outcomes.tree(cell)), strict=True))
        rows.append(row | from_nuts(held_out, cell))
    return {"cells": Frame.of(rows), "engines": agreements(held_out)}


def seam(tree: xr.DataTree) -> tuple[float, float]:
    """Share of draws with a longitude at the seam, and steps across it in 1000; NaN without unit-norm weights."""
    weights = tree["posterior"].to_dataset()["W1"].transpose("chain", "draw", "in", "hidden1")
    values = weights.values
    if not np.allclose(np.square(values).sum(axis=2), 1):
        return float("nan"), float("nan")
    longitude = np.arctan2(values[:, :, 1], values[:, :, 0])
    at_seam = (np.abs(longitude) > np.pi - SEAM).any(axis=-1)
    # Nearer to the seam than to 0, before and after, and on its other side.
    behind = np.abs(longitude) > np.pi / 2
    across = longitude[:, 1:] * longitude[:, :-1] < 0
    across &= behind[:, 1:] & behind[:, :-1]
    return float(at_seam.mean()), float(1000 * across.any(axis=-1).mean())
