"""The design: splits, a network of 50 ReLU units, the cells to run, and posteriors in which one thing differs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from onebasin.inference import Advi, Nuts
from onebasin.models import NetworkTarget, NormalPrior
from onebasin.truth.problems.networks import PAPERS, PARAMETRISATIONS, boston_split, relu_network

from ..lab.study import Cell
from ..networks import check_number
from ..options import Options

NAME = "boston"
HIDDEN = 50
SPLITS = 15
QUICK_SPLITS = 1
WHY_SPLITS = 5  # Splits on which the variations run that show what makes the difference.
NUTS = Nuts(chains=4, warmup=500, draws=1000)
"""Trees reach depth 10 in every draw, and need it: at depth 8 the worst R-hat of a prediction was 1.24, at depth 10
1.02 (split 1, free weights, two chains of 500 draws after 300 of warmup, float64). It still depends on the chains: with
600 draws of two others, in float32, one test point had 1.33."""
QUICK = Nuts(chains=2, warmup=100, draws=100, max_tree_depth=5)
QUICK_PARAMETRISATIONS = ("free", "givens")
ADVI = Advi(iterations=20_000, gradient_samples=1, elbo_samples=20)
"""Many steps of one draw each. On split 1, free weights, a mean-field fit had a test MSE of 3.6 (standardised) after
2,000 steps of four draws and of 0.17 after 15,000 of one; a full-rank one, of 282,000 numbers, of 10^7 after 2,000."""
QUICK_ADVI = replace(ADVI, iterations=500)
FAMILIES = ("meanfield", "fullrank")


SHORT = 50  # Iterations of warmup, and draws, of chains that are cut short.
SHALLOW = 5  # Levels at which trees are cut off.
OVERLAP = 0.25  # The test part over the training part: by so much do random splits share rows.


@dataclass(frozen=True)
class Variation:
    """A posterior, or its sampler, with one thing changed."""

    base: str  # The parametrisation that it is compared with.
    chart: str = ""  # The parametrisation that it has, where that is another one.
    norm: float = 0.0
    """The power of the norm of free incoming weights by which the priors' scales are changed."""
    short: bool = False  # Whether chains are cut short.
    shallow: bool = False  # Whether trees are.

    @property
    def cut(self) -> bool:
        """Check whether its sampler is not given its time, so that its chains need not agree."""
        return self.short or self.shallow

    @property
    def parametrisation(self) -> str:
        """Label of its parametrisation."""
        return self.chart or self.base

    def prior(self, in_dim: int) -> NormalPrior:
        """Scale the priors: of the last layer up and of the hidden biases down, or of incoming weights down."""
        norm = math.sqrt(in_dim)
        if self.norm > 0:  # unit-norm weights: as steep as free ones, and kinks as near
            return NormalPrior((1.0, norm), (1 / norm, 1.0))
        return NormalPrior((1 / norm, 1.0)) if self.norm < 0 else NormalPrior()

    def settings(self, nuts: Nuts) -> Nuts:
        """Change the sampler's settings."""
        if self.short:
            nuts = replace(nuts, warmup=min(SHORT, nuts.warmup), draws=min(SHORT, nuts.draws))
        return replace(nuts, max_tree_depth=SHALLOW) if self.shallow else nuts


VARIATIONS: Mapping[str, Variation] = MappingProxyType(
    {
        "givens_seamless": Variation("givens", chart="givens_seamless"),
        "free-narrow": Variation("free", norm=-1),
        "givens-wide": Variation("givens", norm=1),
        "free-short": Variation("free", short=True),
        "givens-short": Variation("givens", short=True),
        "free-shallow": Variation("free", shallow=True),
        "givens-shallow": Variation("givens", shallow=True),
    }
)


@dataclass(frozen=True)
class BostonConfig:
    """The factors that are crossed; split k has the seed `seed` + k - 1, for rows and for samplers."""

    seed: int
    splits: int
    engines: tuple[str, ...]
    parametrisations: tuple[str, ...]
    nuts: Nuts = field(default_factory=lambda: NUTS)
    advi: Advi = field(default_factory=lambda: ADVI)
    families: tuple[str, ...] = FAMILIES
    why_splits: int = 0

    def __post_init__(self) -> None:
        check_number("splits", self.splits)


def configure(options: Options) -> BostonConfig:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "datasets", "full", "problems")
    default = QUICK_PARAMETRISATIONS if options.quick else PAPERS
    splits = QUICK_SPLITS if options.quick else SPLITS
    splits = splits if options.splits is None else options.splits
    return BostonConfig(
        seed=options.seed,
        splits=splits,
        engines=options.engines("numpyro"),
        parametrisations=options.labels("parametrisations", PARAMETRISATIONS, default),
        nuts=options.sampler(QUICK if options.quick else NUTS),
        advi=QUICK_ADVI if options.quick else ADVI,
        families=FAMILIES[:1] if options.quick else FAMILIES,
        why_splits=0 if options.quick else min(splits, WHY_SPLITS),
    )


def cells(config: BostonConfig) -> tuple[Cell, ...]:
    """List the cells, split by split, so that a run cut short has whole splits.

    Every parametrisation by NUTS and, where the paper has it, by both families of ADVI. Then the variations, on the
    first engine, where the posterior that is varied runs too.
    """
    methods = {"nuts": config.nuts, **dict.fromkeys(config.families, config.advi)}
    asked = config.parametrisations
    alike = [
        (parametrisation, method, engine, settings)
        for parametrisation in asked
        for method, settings in methods.items()
        for engine in config.engines
        if method == "nuts" or parametrisation in PAPERS
    ]
    varied = [
        (name, "nuts", config.engines[0], variation.settings(config.nuts))
        for name, variation in VARIATIONS.items()
        if variation.base in asked and name not in asked
    ]
    return tuple(
        Cell(problem, method, engine, settings, config.seed + number - 1, split=number)
        for number in range(1, config.splits + 1)
        for problem, method, engine, settings in (
            *alike,
            *(varied if number <= config.why_splits else ()),
        )
    )


def target(config: BostonConfig, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on the standardised training part of its split."""
    train = boston_split(config.seed, cell.split or 1).train
    varied = VARIATIONS.get(cell.problem)
    label = varied.parametrisation if varied else cell.problem
    prior = varied.prior(train.in_dim) if varied else None
    model = relu_network(train, HIDDEN, label, prior)
    return model.condition(train.x, train.y, name=f"{NAME}-split{cell.split or 1}")
