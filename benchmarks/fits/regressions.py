"""Regressions in the units of the data, with flat priors and correlated coefficients, as in many publications.

The data are simulated, with the units, sizes and interactions of well-known examples.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onebasin as ob

PROGRAMS = Path(__file__).parent / "programs"
Columns = list[np.ndarray]


def _interaction(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate log earnings by height in inches and sex, with their interaction."""
    male = rng.integers(0, 2, 300)
    height = rng.normal(64 + 5 * male, 2.7)
    y = 6 + 0.04 * height + 0.3 * male + rng.normal(0, 0.9, 300)
    return [height, male, height * male], y


def _score(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate the score of a child by schooling and IQ of the mother."""
    school, iq = rng.integers(0, 2, 200), rng.normal(100, 15, 200)
    return [school, iq, school * iq], 30 + 6 * school + 0.5 * iq + rng.normal(0, 18, 200)


def _quadratic(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate a quadratic trend over years."""
    year = rng.uniform(1990, 2020, 80) - 1950
    return [year, year**2], 3 + 0.2 * year - 0.002 * year**2 + rng.normal(0, 0.5, 80)


def _volumes(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate the log weight of bushes by logs of their correlated measures."""
    size = rng.normal(0, 0.6, 46)
    measures = [size + rng.normal(0, 0.15, 46) for _ in range(5)]
    return measures, 5 + 1.5 * size + rng.normal(0, 0.3, 46)


def _lags(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate a series by its last five values."""
    series = np.cumsum(rng.normal(size=206)) * 0.3 + rng.normal(size=206)
    return [series[5 - lag : -lag] for lag in range(1, 6)], series[5:]


def _ages(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate opinions by age, its square, income and party."""
    age, income = rng.uniform(18, 85, 400), rng.integers(1, 6, 400)
    party = np.clip(rng.normal(4 + 0.3 * (income - 3), 1.8), 1, 7)
    y = 1 + 0.6 * party + 0.01 * age + rng.normal(0, 1.2, 400)
    return [age, age**2 / 100, income, party, party * income], y


def _wells(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate switches of wells by distance in metres and arsenic, with their interaction."""
    distance, arsenic = rng.gamma(1.5, 30, 500), 0.5 + rng.gamma(1.5, 0.8, 500)
    eta = -0.1 - 0.006 * distance + 0.6 * arsenic - 0.002 * distance * arsenic
    return [distance, arsenic, distance * arsenic], rng.uniform(size=500) < 1 / (1 + np.exp(-eta))


def _dose(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Simulate deaths by the logarithm of a dose."""
    dose = rng.uniform(1.7, 1.9, 160)
    return [dose], rng.uniform(size=160) < 1 / (1 + np.exp(-34 * (dose - 1.78)))


MAKERS: dict[str, Callable[[np.random.Generator], tuple[Columns, np.ndarray]]] = {
    "earnings_interaction": _interaction,
    "score_interaction": _score,
    "quadratic_trend": _quadratic,
    "log_volumes": _volumes,
    "five_lags": _lags,
    "opinion_by_age": _ages,
    "wells_interaction": _wells,
    "dose_response": _dose,
}


def target(name: str) -> ob.Target:
    """Return a target by name."""
    columns, y = MAKERS[name](np.random.default_rng(list(name.encode())))
    x = np.column_stack([np.ones(len(y)), *columns])
    data: dict[str, Any] = {"N": len(y), "P": x.shape[1], "X": x, "y": y}
    if y.dtype == bool:
        data["y"] = y.astype(int)
    program = "logit" if y.dtype == bool else "regression"
    return ob.stan_program(PROGRAMS / f"{program}.stan", data, name=name)
