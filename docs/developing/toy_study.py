"""A toy study that tests whether a posterior is half as wide with four times the data."""

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
    """All settings that determine the result of the study."""

    seed: int
    problems: tuple[str, ...]
    nuts: Nuts


def configure(options: Options) -> Config:
    """Make the settings from the options of the command line."""
    options.refuse("toy", "splits", "full", "engine")
    problems = options.labels("problems", SIZES, tuple(SIZES))
    return Config(options.seed, problems, options.sampler(Nuts(chains=2, warmup=200, draws=500)))


def cells(config: Config) -> tuple[lab.Cell, ...]:
    """List the posteriors to compute."""
    return tuple(lab.Cell(p, "nuts", "numpyro", config.nuts, config.seed) for p in config.problems)


def target(config: Config, cell: lab.Cell) -> Target:
    """Return the target of a cell: the mean of normal numbers with a known standard deviation."""
    y = np.random.default_rng(config.seed).normal(1, 1, SIZES[cell.problem])

    def model() -> None:
        mean = numpyro.sample("mean", dist.Normal(0, 10))
        numpyro.sample("y", dist.Normal(mean, 1).expand(y.shape), obs=y)

    return Target(f"toy-{cell.problem}", numpyro_model=model)


def measure(config: Config, outcomes: lab.Outcomes) -> lab.Frames:
    """Return a frame with one row per cell, which has its factors and its measures."""
    sds = {cell: outcomes.diagnosis(cell).parameters.loc["mean", "sd"] for cell in outcomes}
    rows = ({**c.factors, "num_obs": SIZES[c.problem], "sd": sd} for c, sd in sds.items())
    return {"cells": lab.frame_of(rows)}


FOUND, PRINTED = lab.Summary("Sampled", {"posterior sd": "sd"}, ("problem",)), {"posterior sd": 0.5}
CHANGE = lab.Change("problem", (("few", "many"),), scale="ratio")
NARROWER = lab.Summary(
    "By four times the data", {"posterior sd": "sd"}, (), printed=lambda row: PRINTED, change=CHANGE
)
STUDY = lab.Study(configure, cells, target, measure, (FOUND, NARROWER))
