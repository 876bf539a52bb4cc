"""A toy study, of whether a posterior is half as wide with four times the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

from onebasin.inference import Nuts
from onebasin.models.target import Target
from onebasin.studies import lab

SIZES = {"few": 25, "many": 100}


@dataclass(frozen=True)
class Config:
    """All that decides the study's result."""

    seed: int
    problems: tuple[str, ...]
    nuts: Nuts


def configure(options: lab.Options) -> Config:
    """Make settings from what the command line was given."""
    options.refuse("toy", "splits", "full", "engine")
    problems = options.labels("problems", SIZES, tuple(SIZES))
    nuts = options.sampler(Nuts(chains=2, warmup=200, draws=500))
    return Config(options.seed, problems, nuts)


def cells(config: Config) -> tuple[lab.Cell, ...]:
    """List the posteriors to make."""
    return tuple(
        lab.Cell(problem, "nuts", "numpyro", config.nuts, config.seed)
        for problem in config.problems
    )


def target(config: Config, cell: lab.Cell) -> Target:
    """Say what a cell's posterior is of: the mean of numbers with a known spread."""
    y = numbers(config.seed, cell.problem)

    def model() -> None:
        mean = numpyro.sample("mean", dist.Normal(0, 10))
        numpyro.sample("y", dist.Normal(mean, 1).expand(y.shape), obs=y)

    return Target(f"toy-{cell.problem}", numpyro_model=model)


def numbers(seed: int, problem: str) -> np.ndarray:
    """Draw the data."""
    return np.random.default_rng(seed).normal(1, 1, SIZES[problem])


def measure(config: Config, outcomes: lab.Outcomes) -> lab.Frames:
    """Fill the frame, a row a cell: its factors, and what was measured."""
    return {"cells": lab.Frame.of(_row(config, cell, outcomes) for cell in outcomes)}


def _row(config: Config, cell: lab.Cell, outcomes: lab.Outcomes) -> dict[str, Any]:
    found = outcomes.diagnosis(cell).parameters.loc["mean"]
    y = numbers(config.seed, cell.problem)
    exact = y.sum() / (len(y) + 0.01)
    error = abs(found["mean"] - exact) / found["mcse_mean"]
    return {**cell.factors, "num_obs": len(y), "sd": found["sd"], "error": error}


POSTERIORS = lab.Summary(
    "What was sampled, and the error of the mean in Monte Carlo errors",
    {"posterior sd": "sd", "error": "error"},
    by=("problem",),
)
NARROWER = lab.Summary(
    "By four times the data, over without; the standard deviation should halve",
    {"posterior sd": "sd"},
    by=(),
    printed=lambda row: {"posterior sd": 0.5},
    change=lab.Change("problem", (("few", "many"),), scale="ratio"),
)

STUDY = lab.Study(configure, cells, target, measure, (POSTERIORS, NARROWER))
