"""The design: splits, a network of 50 ReLU units, and the cells to run."""

from dataclasses import dataclass, field, replace
from typing import Any

from onebasin.base.errors import StudyError
from onebasin.inference import Advi, Nuts
from onebasin.models import NetworkTarget
from onebasin.truth.problems.relu_networks import (
    PAPERS,
    PARAMETRISATIONS,
    boston_split,
    relu_network,
)

from ..lab import Cell, Options
from .why import VARIATIONS

NAME = "boston"
HIDDEN = 50
SPLITS = 15
QUICK_SPLITS = 1
MAX_SPLITS = 99
WHY_SPLITS = 5
"""Splits on which the variations run that show what makes the difference."""
NUTS = Nuts(chains=4, warmup=500, draws=1000)
"""Trees reach depth 10 in every draw, and need it: at depth 8 the worst R-hat of a prediction was 1.24, at depth 10
1.02 (split 1, free weights, two chains of 500 draws after 300 of warmup, float64). It still depends on the chains: with
600 draws of two others, in float32, one test point had 1.33."""
QUICK = Nuts(chains=2, warmup=150, draws=150, max_tree_depth=8)
ADVI = Advi(iterations=20_000, gradient_samples=1, elbo_samples=20)
"""Many steps of one draw each. On split 1, free weights, a mean-field fit had a test MSE of 3.6 (standardised) after
2,000 steps of four draws and of 0.17 after 15,000 of one; a full-rank one, of 282,000 numbers, of 10^7 after 2,000."""
QUICK_ADVI = replace(ADVI, iterations=500)
FAMILIES = ("meanfield", "fullrank")


@dataclass(frozen=True)
class Config:
    """What is crossed; split k has the seed `seed` + k - 1, for rows and for samplers."""

    seed: int
    splits: int
    engines: tuple[str, ...]
    parametrisations: tuple[str, ...]
    nuts: Nuts = field(default_factory=lambda: NUTS)
    advi: Advi = field(default_factory=lambda: ADVI)
    why_splits: int = 0

    def __post_init__(self) -> None:
        """Refuse a number of splits that makes no sense."""
        if not 1 <= self.splits <= MAX_SPLITS:
            raise StudyError(
                f"`--splits` is {self.splits}; it must be a whole number from 1 to {MAX_SPLITS}."
            )


def configure(options: Options) -> Config:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "datasets", "full", "problems")
    splits = QUICK_SPLITS if options.quick else SPLITS
    splits = splits if options.splits is None else options.splits
    return Config(
        seed=options.seed,
        splits=splits,
        engines=options.engines("numpyro"),
        parametrisations=options.labels("parametrisations", PARAMETRISATIONS, PAPERS),
        nuts=options.sampler(QUICK if options.quick else NUTS),
        advi=QUICK_ADVI if options.quick else ADVI,
        why_splits=0 if options.quick else min(splits, WHY_SPLITS),
    )


def cells(config: Config) -> tuple[Cell, ...]:
    """List the cells, split by split, so that a run cut short has whole splits."""
    return tuple(
        cell
        for number in range(1, config.splits + 1)
        for cell in (*_of_split(config, number), *_variations(config, number))
    )


def _of_split(config: Config, number: int) -> tuple[Cell, ...]:
    """Every parametrisation by NUTS and, where the paper has it, by both families of ADVI."""
    return tuple(
        _cell(config, number, parametrisation, method, engine, settings)
        for parametrisation in config.parametrisations
        for method, settings in (("nuts", config.nuts), *((f, config.advi) for f in FAMILIES))
        for engine in config.engines
        if method == "nuts" or parametrisation in PAPERS
    )


def _variations(config: Config, number: int) -> tuple[Cell, ...]:
    """Change one thing at a time, on the first engine, where the posterior that is varied runs too."""
    engine = config.engines[0]
    return tuple(
        _cell(config, number, name, "nuts", engine, variation.settings(config.nuts))
        for name, variation in VARIATIONS.items()
        if number <= config.why_splits
        and variation.base in config.parametrisations
        and name not in config.parametrisations
    )


def _cell(
    config: Config, number: int, problem: str, method: str, engine: str, settings: Any
) -> Cell:
    return Cell(problem, method, engine, settings, config.seed + number - 1, split=number)


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on the standardised training part of its split."""
    train = boston_split(config.seed, cell.split or 1).train
    varied = VARIATIONS.get(cell.problem)
    label = varied.parametrisation if varied else cell.problem
    prior = varied.prior(train.in_dim) if varied else None
    model = relu_network(train, HIDDEN, label, prior)
    return model.condition(train.x, train.y, name=f"{NAME}-split{cell.split or 1}")
