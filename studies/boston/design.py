"""Design of the study: splits, a network of 50 ReLU units, cells, and variations that change one setting each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
WHY_SPLITS = 5  # Number of splits on which the variations run.
NUTS = Nuts(chains=4, warmup=500, draws=1000)
"""Default sampler. Trees reach depth 10 in every draw and need this depth. The worst R-hat of a prediction was 1.24 at
depth 8 and 1.02 at depth 10 (split 1, free weights, two chains of 500 draws after 300 warmup iterations, float64). The
result still depends on the chains: with 600 draws from two other chains in float32, one test point had 1.33."""
QUICK = Nuts(chains=2, warmup=100, draws=100, max_tree_depth=5)
QUICK_PARAMETRISATIONS = ("free", "givens")
ADVI = Advi(iterations=20_000, gradient_samples=1, elbo_samples=20)
"""Default ADVI, with many steps of one draw each. On split 1 with free weights, a mean-field fit had a test MSE
(standardised) of 3.6 after 2,000 steps of four draws, and 0.17 after 15,000 steps of one draw. A full-rank fit, with
282,000 numbers, had 10^7 after 2,000 steps."""
QUICK_ADVI = replace(ADVI, iterations=500)
FAMILIES = ("meanfield", "fullrank")


SHORT = 50  # Numbers of warmup iterations and of draws in short chains.
SHALLOW = 5  # Maximum tree depth of shallow trees.
OVERLAP = 0.25  # Ratio of test size to training size, which widens intervals for the rows that splits share.


@dataclass(frozen=True)
class Variation:
    """A change of one setting of the posterior or its sampler."""

    base: str  # Parametrisation that the variation is compared with.
    chart: str = ""  # Parametrisation of the variation, if different from `base`.
    norm: float = 0.0
    """1 or -1 if prior scales change by the norm of free incoming weights, as in `prior`; 0 if not."""
    short: bool = False  # True for short chains.
    shallow: bool = False  # True for shallow trees.

    @property
    def cut(self) -> bool:
        """True if chains are short or trees shallow, so that chains may disagree."""
        return self.short or self.shallow

    @property
    def parametrisation(self) -> str:
        """Label of the variation's parametrisation."""
        return self.chart or self.base

    def prior(self, in_dim: int) -> NormalPrior:
        """Return the prior, with a wider last layer and narrower hidden biases, or with narrower incoming weights."""
        norm = math.sqrt(in_dim)
        if self.norm > 0:  # Keeps the slopes and kinks of free weights.
            return NormalPrior((1.0, norm), (1 / norm, 1.0))
        return NormalPrior((1 / norm, 1.0)) if self.norm < 0 else NormalPrior()

    def settings(self, nuts: Nuts) -> Nuts:
        """Return the settings of the variation's sampler."""
        if self.short:
            nuts = replace(nuts, warmup=min(SHORT, nuts.warmup), draws=min(SHORT, nuts.draws))
        return replace(nuts, max_tree_depth=SHALLOW) if self.shallow else nuts


VARIATIONS: Mapping[str, Variation] = {
    "givens_seamless": Variation("givens", chart="givens_seamless"),
    "free-narrow": Variation("free", norm=-1),
    "givens-wide": Variation("givens", norm=1),
    "free-short": Variation("free", short=True),
    "givens-short": Variation("givens", short=True),
    "free-shallow": Variation("free", shallow=True),
    "givens-shallow": Variation("givens", shallow=True),
}


@dataclass(frozen=True)
class BostonConfig:
    """Crossed factors and settings. Split k uses the seed `seed` + k - 1 for rows and samplers."""

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
    """Make the settings from the options of the command line."""
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
    """List the cells split by split, so that an interrupted run has complete splits.

    NUTS samples every parametrisation. Both families of ADVI fit the parametrisations of the paper. The variations
    follow, on the first engine, if their base parametrisation runs too.
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
    """Condition the model of a cell on the standardised training part of its split."""
    train = boston_split(config.seed, cell.split or 1).train
    varied = VARIATIONS.get(cell.problem)
    label = varied.parametrisation if varied else cell.problem
    prior = varied.prior(train.in_dim) if varied else None
    model = relu_network(train, HIDDEN, label, prior)
    return model.condition(train.x, train.y, name=f"{NAME}-split{cell.split or 1}")
