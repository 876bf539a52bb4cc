"""The design: 100 points of the teacher, a network like it, and the cells to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from onebasin.inference import AdviSettings, NutsSettings
from onebasin.models import NetworkTarget
from onebasin.models.data import Dataset, load_data

from ..lab import Cell, Options
from ..pourzanjani import PARAMETRISATIONS, relu_network

NAME = "relu-teacher"
HIDDEN = 2
QUICK = NutsSettings(chains=2, warmup=300, draws=300)
METHODS = ("nuts", "meanfield", "fullrank")

CHARTS = ("givens", "givens_seamless", "unit_vector")
"""The same constraint in three charts; the last two are sampled only, to show the first one's seam."""
_SAMPLED_ONLY = CHARTS[1:]


@dataclass(frozen=True)
class Config:
    """The study's settings.

    Attributes
    ----------
    seed : int
        Of the data and of every sampler.
    engines, parametrisations : tuple of str
        What is crossed.
    nuts : NutsSettings
        Settings of NUTS.
    advi : AdviSettings
        Settings of ADVI.
    """

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
    return tuple(
        Cell(
            problem=parametrisation,
            method=method,
            engine=engine,
            settings=config.nuts if method == "nuts" else config.advi,
            seed=config.seed,
        )
        for parametrisation in config.parametrisations
        for method in METHODS
        for engine in config.engines
        if method == "nuts" or parametrisation not in _SAMPLED_ONLY
    )


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on the training points."""
    data = dataset(config.seed)
    model = relu_network(data, HIDDEN, cell.problem)
    return model.condition(data.x, data.y, name=NAME)


@cache
def dataset(seed: int) -> Dataset:
    """Load the data: 100 training points, 100 held out, and the true function."""
    return load_data(NAME, seed=seed)
