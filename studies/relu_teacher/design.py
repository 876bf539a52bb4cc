"""The design: 100 points of the teacher, and a network like it.

One data set by default, with noise of standard deviation 1; with --full many, at two levels of the noise, so that
every statement is tried over all of them. The paper has one, and does not state its noise.
"""

from dataclasses import dataclass, field

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
"""The same constraint in three charts; the last two are sampled only, to show the first one's seam."""
SEAM = 0.1  # Within this of +-pi, in radians, a longitude counts as lying at the seam.
FULL_DATASETS = 20
NOISES, FULL_NOISES = (1.0,), (1.0, 0.5)
"""Standard deviations of the noise: the plainest reading of the paper, and half of it."""


@dataclass(frozen=True)
class TeacherConfig:
    """The crossed factors, and their settings; data set k has the seed `seed` + k - 1, for data and samplers."""

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
    """Make the settings from what the command line was given."""
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
    """List the cells, data set by data set: every parametrisation by NUTS, the paper's also by ADVI.

    Their case is the standard deviation of the noise.
    """
    settings = {"nuts": config.nuts, "meanfield": config.advi, "fullrank": config.advi}
    several = config.datasets > 1 or len(config.noises) > 1
    return tuple(
        Cell(
            parametrisation,
            method,
            engine,
            settings[method],
            config.seed + number - 1,
            data=f"noise{noise:g}-set{number:02d}" if several else "",
            number=number,
            case=noise,
        )
        for number in range(1, config.datasets + 1)
        for noise in config.noises
        for parametrisation in config.parametrisations
        for method in METHODS
        for engine in config.engines
        if method == "nuts" or parametrisation not in CHARTS[1:]
    )


def target(config: TeacherConfig, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on the training points."""
    data = data_of(cell)
    return relu_network(data, TEACHER_UNITS, cell.problem).condition(data.x, data.y, name=NAME)


def data_of(cell: Cell) -> Dataset:
    """Load the data that a cell's posterior is of."""
    return teacher_data(cell.seed, cell.case)
