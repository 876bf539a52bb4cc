"""The design, 100 points of the teacher and a network like it; and what is measured of its posteriors.

One data set by default, with noise of standard deviation 1; with --full many, at two levels of the noise, so that
every statement is tried over all of them. The paper has one, and does not state its noise.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.predictive.heldout import predict_held_out
from onebasin.base.errors import ArgumentError, StudyError
from onebasin.inference import Advi, Nuts
from onebasin.models import NetworkTarget
from onebasin.models.data import Dataset
from onebasin.truth.problems.relu_networks import (
    PARAMETRISATIONS,
    TEACHER_UNITS,
    relu_network,
    teacher_data,
)

from ..lab import Cell, Frame, Frames, Options, Outcomes, Row
from ..lab.diagnosis import diagnosis_columns
from ..shared.against_nuts import agreements, from_nuts
from ..shared.heldout import columns_of

NAME = "relu-teacher"
QUICK = Nuts(chains=2, warmup=300, draws=300)
METHODS = ("nuts", "meanfield", "fullrank")
CHARTS = ("givens", "givens_seamless", "unit_vector")
"""The same constraint in three charts; the last two are sampled only, to show the first one's seam."""
FULL_DATASETS = 20
MAX_DATASETS = 99
NOISES, FULL_NOISES = (1.0,), (1.0, 0.5)
"""Standard deviations of the noise: the plainest reading of the paper, and half of it."""
SEAM = 0.1
"""Within this of +-pi, in radians, a longitude counts as lying at the seam."""


@dataclass(frozen=True)
class Config:
    """What is crossed, and by which settings; data set k has the seed `seed` + k - 1, for data and samplers."""

    seed: int
    engines: tuple[str, ...]
    parametrisations: tuple[str, ...]
    nuts: Nuts = field(default_factory=Nuts)
    advi: Advi = field(default_factory=Advi)
    datasets: int = 1
    noises: tuple[float, ...] = NOISES

    def __post_init__(self) -> None:
        """Refuse a number of data sets that makes no sense."""
        if not 1 <= self.datasets <= MAX_DATASETS:
            raise StudyError(
                f"`--datasets` is {self.datasets}; it must be a whole number from 1 to {MAX_DATASETS}."
            )


@dataclass(frozen=True)
class DataCell(Cell):
    """A posterior of one data set."""

    number: int = 1  # Of the data set, from 1.
    noise_sd: float = 1.0  # Of the data's noise.


def configure(options: Options) -> Config:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "splits", "problems")
    datasets = FULL_DATASETS if options.full else 1
    return Config(
        seed=options.seed,
        engines=options.engines("both"),
        parametrisations=options.labels(
            "parametrisations", PARAMETRISATIONS, tuple(PARAMETRISATIONS)
        ),
        nuts=options.sampler(QUICK if options.quick else Nuts()),
        datasets=datasets if options.datasets is None else options.datasets,
        noises=FULL_NOISES if options.full else NOISES,
    )


def cells(config: Config) -> tuple[DataCell, ...]:
    """List the cells, data set by data set: every parametrisation by NUTS, the paper's also by ADVI."""
    settings = {"nuts": config.nuts, "meanfield": config.advi, "fullrank": config.advi}
    return tuple(
        DataCell(
            parametrisation,
            method,
            engine,
            settings[method],
            config.seed + number - 1,
            data=_name(config, number, noise),
            number=number,
            noise_sd=noise,
        )
        for number in range(1, config.datasets + 1)
        for noise in config.noises
        for parametrisation in config.parametrisations
        for method in METHODS
        for engine in config.engines
        if method == "nuts" or parametrisation not in CHARTS[1:]
    )


def _name(config: Config, number: int, noise_sd: float) -> str:
    """Name a data set where there are several."""
    several = config.datasets > 1 or len(config.noises) > 1
    return f"noise{noise_sd:g}-set{number:02d}" if several else ""


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on the training points."""
    data = data_of(config, cell)
    return relu_network(data, TEACHER_UNITS, cell.problem).condition(data.x, data.y, name=NAME)


def data_of(config: Config, cell: Cell) -> Dataset:
    """Load the data that a cell's posterior is of."""
    assert isinstance(cell, DataCell), "cells are made here"
    return teacher_data(config.seed + cell.number - 1, cell.noise_sd)


def measure(config: Config, outcomes: Outcomes) -> Frames:
    """Measure every cell, and compare those that belong together.

    The frames: `cells`, a row a cell: diagnosis, scores at the held-out points (`bias` and `error` are mean and root
    mean square of the predictive mean less the true function), the share of draws `at_seam` and the `crossings` of the
    seam, and for variational cells the distance from NUTS; and `engines`, a row a parametrisation: the engines' NUTS
    against each other.
    """
    rows: list[dict[str, Any]] = []
    engines: list[Row] = []
    for alike in dict.fromkeys(cell.data for cell in outcomes):
        found, agreement = _measure_data(config, outcomes, alike)
        rows += found
        engines += agreement
    return {"cells": Frame.of(rows), "engines": Frame.of(engines)}


def _measure_data(
    config: Config, outcomes: Outcomes, name: str
) -> tuple[list[dict[str, Any]], Frame]:
    """Measure the cells of one data set, whose predictions are in memory together."""
    held_out, rows = {}, []
    for cell in outcomes:
        if cell.data == name:
            test = _held_out(config, cell)
            model = target(config, cell).model
            held_out[cell] = predict_held_out(outcomes.tree(cell), model, test.x, test.y)
    for cell, predictions in held_out.items():
        test, truth = _held_out(config, cell), data_of(config, cell).truth
        assert truth is not None, "the teacher's data know it"
        miss = predictions.function.mean(axis=(0, 1)) - truth(test.x)
        row = {**cell.factors, **diagnosis_columns(outcomes, cell)}
        row |= {"noise_sd": getattr(cell, "noise_sd", 1.0), "dataset": getattr(cell, "number", 1)}
        row |= columns_of(predictions, row["sampling_seconds"])
        row |= {"bias": miss.mean(), "error": np.sqrt(np.mean(miss**2))}
        row |= dict(zip(("at_seam", "crossings"), seam(outcomes.tree(cell)), strict=True))
        rows.append(row | from_nuts(held_out, cell))
    return rows, agreements(held_out)


def _held_out(config: Config, cell: Cell) -> Dataset:
    data = data_of(config, cell)
    if data.held_out is None or data.truth is None:
        raise ArgumentError(f"`{data.name}` has no held-out points or no true function.")
    return data.held_out


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
