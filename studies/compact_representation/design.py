"""The design: three sizes of the experiment, their settings and data, and the names of the cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference import AdviSettings, EnsembleSettings, HmcSettings
from onebasin.models import BayesianNetwork, NetworkTarget
from onebasin.models.symmetry.blocks import Exchangeable, Symmetry, blocks_of

from ..lab import Cell, Options
from ..lab.images import Images, classifier, image_split

NAME = "compact-representation"


@dataclass(frozen=True)
class Size(Images):
    """What is inferred: a classifier of images with so many hidden units."""

    hidden: int


@dataclass(frozen=True)
class AlignSettings:
    """How draws are aligned: see `analysis.alignment.align`."""

    reference: str
    cost: str
    gauge: str = "keep"


@dataclass(frozen=True)
class RowSettings:
    """A representation whose predictions make a row."""

    kind: str  # "draws" of the posterior that it is made from, or a "gaussian" fitted to them.
    num: int | None = None  # Draws; None for all of them.
    repeats: int = 1  # Different choices of draws, over which the row's numbers are averaged.
    covariance: str = "diagonal"
    rank: int = 20
    shrinkage: float | None = None
    """`covariance`, `rank`, `shrinkage`: of the Gaussian: see `analysis.gaussian.fit_gaussian`."""
    part: str = ""  # "first" or "second" half of the chains (draws, if there is one chain), or all.
    prune: bool = False
    """Whether the mean is pruned by standard deviation, for the paper's Figure 5."""


@dataclass(frozen=True)
class PairSettings:
    """Trained pairs of networks: Adam's settings, and `runs` pairs for every number of `swaps`.

    So many transpositions are applied to the initial weights, of no more than the hidden units less one. `points`
    networks are looked at on the line between two, ends included.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    runs: int
    swaps: tuple[int, ...]
    points: int = 25


@dataclass(frozen=True)
class Config:
    """The study's settings; `draws` are those of a Gaussian from which its predictions are averaged."""

    seed: int
    size: Size
    hmc: HmcSettings
    ensemble: EnsembleSettings
    advi: AdviSettings
    distillation: DistillationSettings
    pairs: PairSettings
    draws: int = 1000


# fmt: off
QUICK = Config(
    seed=0,
    size=Size("digits", side=8, hidden=16, train=1000),
    hmc=HmcSettings(chains=4, warmup=400, draws=500, trajectory_length=1.5, metric="unit", init_radius=1.0),
    ensemble=EnsembleSettings(members=20, epochs=200, batch_size=100, learning_rate=0.01),
    advi=AdviSettings(iterations=4000, gradient_samples=8, learning_rate=0.02, tolerance=1e-5),
    distillation=DistillationSettings(iterations=8000, learning_rate=0.03, initial_sd=1.0),
    pairs=PairSettings(60, 50, 0.01, runs=5, swaps=(0, 2, 5, 8, 11, 15)),
)
DEFAULT = replace(
    QUICK,
    size=Size("mnist-5k", side=14, hidden=32, train=2000),
    pairs=PairSettings(60, 50, 0.01, runs=5, swaps=(0, 4, 8, 16, 24, 31)),
)
FULL = replace(
    QUICK,
    size=Size("mnist", side=28, hidden=512, train=None),
    hmc=HmcSettings(
        chains=1, warmup=200, draws=1000, trajectory_length=0.5, metric="unit", init_radius=0.05, dtype="float32",
    ),
    ensemble=EnsembleSettings(members=20, epochs=30, batch_size=500, learning_rate=0.001),
    advi=AdviSettings(
        iterations=20_000, gradient_samples=2, learning_rate=0.005, tolerance=1e-6, batch_size=500, draws=300,
        dtype="float32",
    ),
    pairs=PairSettings(20, 500, 0.001, runs=5, swaps=(0, 32, 64, 128, 256, 384, 511)),
    draws=300,
)


class Rule(NamedTuple):
    """A way to align draws: settings, words, and the row of the diagonal Gaussian fitted to HMC's draws so aligned."""

    settings: AlignSettings
    words: str
    row: str


RULES = {
    "paper": Rule(AlignSettings("draw", "activations"), "activations, one draw (the paper's)", "hmc-qr"),
    "one-draw": Rule(AlignSettings("draw", "weights"), "whole units, one draw", "one-draw"),
    "mean": Rule(AlignSettings("mean", "weights"), "whole units, iterated mean", "mean-diag"),
    "gaussian": Rule(AlignSettings("gaussian", "weights"), "whole units, iterated Gaussian", "gauss-diag"),
}
"""The paper's rule, plain Git Re-Basin, and the iterated references."""
# fmt: on


def configure(options: Options) -> Config:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "engine", "splits", "parametrisations", "problems")
    base = QUICK if options.quick else FULL if options.full else DEFAULT
    return replace(base, seed=options.seed, hmc=options.sampler(base.hmc))


HMC, ENSEMBLE, MEANFIELD = (f"posterior.{m}.numpyro" for m in ("hmc", "ensemble", "meanfield"))
REFINED, DISTILLED = "hmc-mean.meanfield.numpyro", "hmc.distilled.analysis"
DYNAMICS, SWAPS = "pair.dynamics.analysis", "pair.swaps.analysis"
"""Keys of cells; the engine `analysis` is that of a cell which is computed from others."""


def aligned(source: str, rule: str) -> str:
    """Key of the aligned draws of `hmc` or `ensemble`."""
    return f"{source}.aligned-{rule}.analysis"


def num_parameters(config: Config) -> int:
    """Count the network's weights and biases."""
    shapes = network(config).network.shapes.values()
    return sum(int(np.prod(shape)) for shape in shapes)


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the network on the training images; every cell's result depends on them."""
    train = image_split(config.size, config.seed).train
    return network(config).condition(train.x, train.y, name=f"{NAME}-{config.size.data}")


def network(config: Config) -> BayesianNetwork:
    """State the model."""
    return classifier(config.size, config.size.hidden)


def permutations_of(model: BayesianNetwork) -> Symmetry:
    """The network's symmetry without the positive scalings, which the prior breaks."""
    return blocks_of(model.symmetry, Exchangeable)
