"""The design: splits, a network of 50 ReLU units, and the cells to run."""

from dataclasses import dataclass, field
from functools import lru_cache

from onebasin.inference import NutsSettings
from onebasin.models import NetworkTarget
from onebasin.models.data import StandardisedSplit, load_data, split, standardise

from ..errors import StudyError
from ..lab import Cell, Options
from ..pourzanjani import PARAMETRISATIONS, relu_network

NAME = "boston"
HIDDEN = 50
SPLITS = 15
QUICK_SPLITS = 1
MAX_SPLITS = 99
QUICK = NutsSettings(chains=2, warmup=150, draws=150, max_tree_depth=8)
DEFAULT = ("free", "givens")


@dataclass(frozen=True)
class Config:
    """What is crossed; split k has the seed `seed` + k - 1, for rows and for samplers."""

    seed: int
    splits: int
    engines: tuple[str, ...]
    parametrisations: tuple[str, ...]
    nuts: NutsSettings = field(default_factory=NutsSettings)

    def __post_init__(self) -> None:
        """Refuse a number of splits that makes no sense."""
        if not 1 <= self.splits <= MAX_SPLITS:
            raise StudyError(
                f"`--splits` is {self.splits}; it must be a whole number from 1 to {MAX_SPLITS}."
            )


def configure(options: Options) -> Config:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "full", "problems")
    splits = QUICK_SPLITS if options.quick else SPLITS
    return Config(
        seed=options.seed,
        splits=splits if options.splits is None else options.splits,
        engines=options.engines("numpyro"),
        parametrisations=options.labels("parametrisations", PARAMETRISATIONS, DEFAULT),
        nuts=options.sampler(QUICK if options.quick else NutsSettings()),
    )


def cells(config: Config) -> tuple[Cell, ...]:
    """List the cells, split by split, so that a run cut short has whole splits."""
    return tuple(
        Cell(
            problem=parametrisation,
            method="nuts",
            engine=engine,
            settings=config.nuts,
            seed=config.seed + number - 1,
            split=number,
        )
        for number in range(1, config.splits + 1)
        for parametrisation in config.parametrisations
        for engine in config.engines
    )


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on the standardised training part of its split."""
    train = parts(config.seed, cell.split or 1).train
    model = relu_network(train, HIDDEN, cell.problem)
    return model.condition(train.x, train.y, name=f"{NAME}-split{cell.split or 1}")


@lru_cache(maxsize=4)
def parts(seed: int, number: int) -> StandardisedSplit:
    """Split the data, 80 to 20, and standardise on the training part."""
    return standardise(split(load_data(NAME), test_fraction=0.2, seed=seed + number - 1))
