"""A toy study, of whether a posterior is half as wide with four times the data."""

from dataclasses import dataclass

import numpy as np
import numpyro
import numpyro.distributions as dist

from onebasin.inference import Nuts
from onebasin.models.target import Target
from onebasin.studies.lab import study as lab
from onebasin.studies.options import Options

SIZES = {"few": 25, "many": 100}


@dataclass(frozen=True)
class Config:
    """All that decides the study's result."""

    seed: int
    problems: tuple[str, ...]
    nuts: Nuts


def configure(options: Options) -> Config:
    """Make settings from what the command line was given."""
    options.refuse("toy", "splits", "full", "engine")
    problems = options.labels("problems", SIZES, tuple(SIZES))
    return Config(options.seed, problems, options.sampler(Nuts(chains=2, warmup=200, draws=500)))


def cells(config: Config) -> tuple[lab.Cell, ...]:
    """List the posteriors to make."""
    return tuple(lab.Cell(p, "nuts", "numpyro", config.nuts, config.seed) for p in config.problems)


def target(config: Config, cell: lab.Cell) -> Target:
    """Say what a cell's posterior is of: the mean of numbers with a known spread."""
    y = np.random.default_rng(config.seed).normal(1, 1, SIZES[cell.problem])

    def model() -> None:
        mean = numpyro.sample("mean", dist.Normal(0, 10))
        numpyro.sample("y", dist.Normal(mean, 1).expand(y.shape), obs=y)

    return Target(f"toy-{cell.problem}", numpyro_model=model)


def measure(config: Config, outcomes: lab.Outcomes) -> lab.Frames:
    """Fill the frame, one row per cell: its factors, and what was measured."""
    sds = {cell: outcomes.diagnosis(cell).parameters.loc["mean", "sd"] for cell in outcomes}
    rows = ({**c.factors, "num_obs": SIZES[c.problem], "sd": sd} for c, sd in sds.items())
    return {"cells": lab.frame_of(rows)}


FOUND, PRINTED = lab.Summary("Sampled", {"posterior sd": "sd"}, ("problem",)), {"posterior sd": 0.5}
CHANGE = lab.Change("problem", (("few", "many"),), scale="ratio")
NARROWER = lab.Summary(
    "By four times the data", {"posterior sd": "sd"}, (), printed=lambda row: PRINTED, change=CHANGE
)
STUDY = lab.Study(configure, cells, target, measure, (FOUND, NARROWER))
