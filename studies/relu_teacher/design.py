"""Design of the study: 100 points from the teacher, and a network of the same architecture.

By default there is one data set, with noise of standard deviation 1. With `--full`, there are many data sets at two
levels of noise, and every statement is tested over all of them. The paper has one data set and does not state its
noise.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from onebasin.inference import Advi, Nuts
from onebasin.models import NetworkTarget
from onebasin.models.data import Dataset
from onebasin.truth.problems.networks import (
    PARAMETRISATIONS,
    TEACHER_UNITS,
    relu_network,
    teacher_data,
)

from ..lab.study import Cell
from ..networks import check_number
from ..options import Options

NAME = "relu-teacher"
QUICK = Nuts(chains=2, warmup=200, draws=200)
QUICK_PARAMETRISATIONS = ("free", "givens")
METHODS = ("nuts", "meanfield", "fullrank")
CHARTS = ("givens", "givens_seamless", "unit_vector")
"""Three charts of the same constraint. NUTS, but not ADVI, runs on the last two, which have no seam."""
SEAM = 0.1  # Largest distance from +-pi, in radians, of a longitude at the seam.
FULL_DATASETS = 20
NOISES, FULL_NOISES = (1.0,), (1.0, 0.5)
"""Standard deviations of the noise: 1, the simplest reading of the paper, and half of it."""


@dataclass(frozen=True)
class TeacherConfig:
    """Crossed factors and settings. Data set k uses the seed `seed` + k - 1 for data and samplers."""

    seed: int
    engines: tuple[str, ...]
    parametrisations: tuple[str, ...]
    nuts: Nuts = field(default_factory=Nuts)
    advi: Advi = field(default_factory=Advi)
    datasets: int = 1
    noises: tuple[float, ...] = NOISES

    def __post_init__(self) -> None:
        check_number("datasets", self.datasets)


def configure(options: Options) -> TeacherConfig:
    """Make the settings from the options of the command line."""
    options.refuse(NAME, "splits", "problems")
    datasets = FULL_DATASETS if options.full else 1
    default = QUICK_PARAMETRISATIONS if options.quick else tuple(PARAMETRISATIONS)
    return TeacherConfig(
        seed=options.seed,
        engines=options.engines("numpyro" if options.quick else "both"),
        parametrisations=options.labels("parametrisations", PARAMETRISATIONS, default),
        nuts=options.sampler(QUICK if options.quick else Nuts()),
        datasets=datasets if options.datasets is None else options.datasets,
        noises=FULL_NOISES if options.full else NOISES,
    )


def cells(config: TeacherConfig) -> tuple[Cell, ...]:
    """List the cells, data set by data set: every parametrisation by NUTS, and the paper's by ADVI too.

    The case of a cell is the standard deviation of the noise.
    """
    settings = {"nuts": config.nuts, "meanfield": config.advi, "fullrank": config.advi}
    several = config.datasets > 1 or len(config.noises) > 1
    found = []
    for number, noise in product(range(1, config.datasets + 1), config.noises):
        name = f"noise{noise:g}-set{number:02d}" if several else ""
        which: dict[str, Any] = {"data": name, "number": number, "case": noise}
        for label, method, engine in product(config.parametrisations, METHODS, config.engines):
            if method == "nuts" or label not in CHARTS[1:]:
                seed = config.seed + number - 1
                found.append(Cell(label, method, engine, settings[method], seed, **which))
    return tuple(found)


def target(config: TeacherConfig, cell: Cell) -> NetworkTarget:
    """Condition the model of a cell on the training points."""
    data = data_of(cell)
    return relu_network(data, TEACHER_UNITS, cell.problem).condition(data.x, data.y, name=NAME)


def data_of(cell: Cell) -> Dataset:
    """Return the data set of a cell."""
    return teacher_data(cell.seed, cell.case)
