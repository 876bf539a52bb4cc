"""A toy study, of whether a posterior is half as wide with four times the data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

from onebasin.inference import Nuts
from onebasin.models.target import Target
from onebasin.studies import lab

SIZES = {"few": 25, "many": 100}
MAX_ERROR = 5.0
"""Monte Carlo errors by which a posterior mean may be off."""


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


NARROWER = lab.Claim(
    "narrower with more data",
    "The standard deviation falls with the square root of the number of observations.",
    "the sd with four times the data is less than 0.6 of the other",
    lab.contrast(
        "cells",
        "problem",
        [("few", "many")],
        lambda few, many: (f"{few['sd']:.3g} to {many['sd']:.3g}", many["sd"] < 0.6 * few["sd"]),
        same=("method", "engine"),
        where=lambda few, many: f"{few['num_obs']} to {many['num_obs']} numbers",
    ),
)
RIGHT = lab.Claim(
    "the right mean",
    "NUTS samples the posterior.",
    f"the posterior mean is within {MAX_ERROR:g} Monte Carlo errors of the exact one",
    lab.each("cells", lambda row: (f"{row['error']:.1f} errors", row["error"] <= MAX_ERROR)),
)
POSTERIORS = lab.RowTable(
    "What was sampled",
    (
        lab.Field("posterior", "label"),
        lab.Field("sd", "sd", decimals=3),
        lab.Field("error", "error", decimals=1, unit="MCSE", flag=lab.at_most(MAX_ERROR)),
    ),
)


def headline(frames: lab.Frames) -> Iterable[str]:
    """Say the result."""
    sds = ", ".join(f"{row['sd']:.3f} with {row['num_obs']} numbers" for row in frames["cells"])
    return f"The posterior sd is {sds}.", lab.count_verdicts(frames)


def chapters(config: Config, outcomes: lab.Outcomes, frames: lab.Frames) -> Iterable[lab.Chapter]:
    """Lay out the page."""
    yield lab.Chapter("The question", "Is a posterior half as wide with four times the data?")
    yield lab.Chapter("The answer", views=(POSTERIORS, lab.STATEMENTS, lab.TRIALS))


STUDY = lab.Study(
    configure=configure, cells=cells, target=target, measures=measure, claims=(NARROWER, RIGHT),
    views=(lab.STATEMENTS, lab.TRIALS, POSTERIORS), title="A toy", headline=headline, chapters=chapters,
)  # fmt: skip
