"""Design of the study: three sizes of the experiment with settings and data, the rows of the table, and the cells."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference import Advi, Ensemble, Hmc
from onebasin.models import BayesianNetwork, NetworkTarget
from onebasin.models.symmetry.blocks import Exchangeable, Symmetry, blocks_of
from onebasin.truth.problems.networks import Images, classifier, image_split

from ..lab.study import Cell
from ..options import Options

NAME = "compact-representation"


@dataclass(frozen=True)
class Size(Images):
    """The images, and the number of hidden units of their classifier."""

    hidden: int


@dataclass(frozen=True)
class AlignSettings:
    """Settings of `analysis.alignment.align` for draws."""

    reference: str
    cost: str
    gauge: str = "keep"


@dataclass(frozen=True)
class RowSettings:
    """Settings of a representation that forms a row of the table."""

    kind: str  # "draws" of the source posterior, or a "gaussian" fitted to them.
    num: int | None = None  # Number of draws; None for all.
    repeats: int = 1  # Number of different choices of draws over which the row is averaged.
    covariance: str = "diagonal"
    shrinkage: float | None = None
    """`covariance`, `shrinkage`: arguments of `analysis.gaussian.fit_gaussian`."""
    part: str = ""  # "first" or "second" half of the chains (of the draws if there is one chain), or "" for all.
    prune: bool = False
    """True to prune the mean by standard deviation, for the paper's Figure 5."""


@dataclass(frozen=True)
class PairSettings:
    """Settings of trained pairs of networks: settings of Adam, and `runs` pairs for every number in `swaps`.

    `swaps` are numbers of transpositions of the initial weights, each less than the number of hidden units. `points` is
    the number of networks on the line between two networks, including both ends.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    runs: int
    swaps: tuple[int, ...]
    points: int = 25


@dataclass(frozen=True)
class Distilling:
    """Settings of a distilled Gaussian, and the number of its draws for predictions."""

    distillation: DistillationSettings
    draws: int


@dataclass(frozen=True)
class CompactConfig:
    """Settings of the study; `draws` is the number of draws over which the predictions of a Gaussian are averaged."""

    seed: int
    size: Size
    hmc: Hmc
    ensemble: Ensemble
    advi: Advi
    distillation: DistillationSettings
    pairs: PairSettings
    draws: int = 1000


# fmt: off
QUICK = CompactConfig(
    seed=0,
    size=Size("digits", side=8, hidden=8, train=500),
    hmc=Hmc(chains=2, warmup=100, draws=100, trajectory_length=0.5, metric="unit", init_radius=1.0),
    ensemble=Ensemble(members=5, epochs=50, batch_size=100, learning_rate=0.01),
    advi=Advi(iterations=500, gradient_samples=8, learning_rate=0.02, tolerance=1e-5),
    distillation=DistillationSettings(iterations=300, learning_rate=0.03, initial_sd=1.0),
    pairs=PairSettings(20, 50, 0.01, runs=2, swaps=(0, 4, 7)),
    draws=200,
)
DEFAULT = CompactConfig(
    seed=0,
    size=Size("mnist-5k", side=14, hidden=32, train=2000),
    hmc=Hmc(chains=4, warmup=400, draws=500, trajectory_length=1.5, metric="unit", init_radius=1.0),
    ensemble=Ensemble(members=20, epochs=200, batch_size=100, learning_rate=0.01),
    advi=Advi(iterations=4000, gradient_samples=8, learning_rate=0.02, tolerance=1e-5),
    distillation=DistillationSettings(iterations=8000, learning_rate=0.03, initial_sd=1.0),
    pairs=PairSettings(60, 50, 0.01, runs=5, swaps=(0, 4, 8, 16, 24, 31)),
)
FULL = replace(
    DEFAULT,
    size=Size("mnist", side=28, hidden=512, train=None),
    hmc=Hmc(
        chains=1, warmup=200, draws=1000, trajectory_length=0.5, metric="unit", init_radius=0.05, dtype="float32",
    ),
    ensemble=Ensemble(members=20, epochs=30, batch_size=500, learning_rate=0.001),
    advi=Advi(
        iterations=20_000, gradient_samples=2, learning_rate=0.005, tolerance=1e-6, batch_size=500, draws=300,
        dtype="float32",
    ),
    pairs=PairSettings(20, 500, 0.001, runs=5, swaps=(0, 32, 64, 128, 256, 384, 511)),
    draws=300,
)


class AlignedRow(NamedTuple):
    """A way to align draws: settings, label, and the row of the diagonal Gaussian of the aligned HMC draws."""

    settings: AlignSettings
    words: str
    row: str


RULES = {
    "paper": AlignedRow(AlignSettings("draw", "activations"), "activations, one draw (the paper's)", "hmc-qr"),
    "one-draw": AlignedRow(AlignSettings("draw", "weights"), "whole units, one draw", "one-draw"),
    "mean": AlignedRow(AlignSettings("mean", "weights"), "whole units, iterated mean", "mean-diag"),
    "gaussian": AlignedRow(AlignSettings("gaussian", "weights"), "whole units, iterated Gaussian", "gauss-diag"),
}
"""Alignment rules: the paper's, plain Git Re-Basin, and the iterated references."""
# fmt: on


def configure(options: Options) -> CompactConfig:
    """Make the settings from the options of the command line."""
    options.refuse(NAME, "datasets", "engine", "splits", "parametrisations", "problems")
    base = QUICK if options.quick else FULL if options.full else DEFAULT
    return replace(base, seed=options.seed, hmc=options.sampler(base.hmc))


HMC, ENSEMBLE, MEANFIELD = (f"posterior.{m}.numpyro" for m in ("hmc", "ensemble", "meanfield"))
REFINED, DISTILLED = "hmc-mean.meanfield.numpyro", "hmc.distilled.analysis"
DYNAMICS, SWAPS = "pair.dynamics.analysis", "pair.swaps.analysis"
"""Keys of cells. The engine `analysis` marks cells that are computed from other cells."""


def aligned(source: str, rule: str) -> str:
    """Return the key of the aligned draws of `hmc` or `ensemble`."""
    return f"{source}.aligned-{rule}.analysis"


def target(config: CompactConfig, cell: Cell) -> NetworkTarget:
    """Condition the network on the training images, which all cells share."""
    train = image_split(config.size, config.seed).train
    return network(config).condition(train.x, train.y, name=f"{NAME}-{config.size.data}")


def network(config: CompactConfig) -> BayesianNetwork:
    """Make the network of the study."""
    return classifier(config.size, config.size.hidden)


def permutations_of(model: BayesianNetwork) -> Symmetry:
    """Return the symmetry of the network without positive scalings, because the prior breaks them."""
    return blocks_of(model.symmetry, Exchangeable)


class Representation(NamedTuple):
    """A representation that forms a row of the table; `source` is the key of its source posterior."""

    name: str
    group: str
    label: str
    source: str
    settings: RowSettings

    @property
    def key(self) -> str:
        """Key of the row's cell."""
        return f"{self.name}.row.analysis"

    @property
    def one_basin(self) -> bool:
        """True if the mean of the draws is meaningful, which requires a common labelling.

        The mean of q_i, a Gaussian fitted to unaligned draws, counts because the paper reports it.
        """
        return self.settings.kind == "gaussian" or self.name in ("vi", "refined", "distilled")


def rows(config: CompactConfig) -> tuple[Representation, ...]:
    """List the rows of the table; a fit without shrinkage needs more draws than weights and biases."""
    parameters = sum(map(math.prod, network(config).network.shapes.values()))
    many_draws = config.hmc.chains * config.hmc.draws > parameters + 1
    return tuple(row for row in _ROWS if many_draws or row.settings.shrinkage != 0.0)


_draws, _gaussian = (partial(RowSettings, kind) for kind in ("draws", "gaussian"))
_PAPER, _MEAN = aligned("hmc", "paper"), aligned("hmc", "mean")
_MEMBERS, _MEAN_MEMBERS = aligned("ensemble", "paper"), aligned("ensemble", "mean")
_OURS = "one Gaussian"
_row = Representation
# fmt: off
_ROWS = (
    _row("hmc", "HMC", "samples (the truth)", HMC, _draws()),
    _row("hmc-qi", "HMC", "q_i: draws as they are, diagonal", HMC, _gaussian(prune=True)),
    _row("hmc-qr", "HMC", "q_r: activations, one draw, diagonal", _PAPER, _gaussian(prune=True)),
    _row("ensemble", "ensemble", "samples", ENSEMBLE, _draws()),
    _row("ensemble-qi", "ensemble", "q_i: members as they are, diagonal", ENSEMBLE, _gaussian()),
    _row("ensemble-qr", "ensemble", "q_r: activations, one member, diagonal", _MEMBERS, _gaussian()),
    _row("ensemble-mean", "ensemble", "iterated mean, diagonal", _MEAN_MEMBERS, _gaussian()),
    _row("ensemble-shrunk", "ensemble", "iterated mean, full, shrunk", _MEAN_MEMBERS, _gaussian(covariance="full")),
    _row("vi", "VI", "mean-field, random start", MEANFIELD, _draws()),
    _row("half-1", "baselines", "first half of the chains", HMC, _draws(part="first")),
    _row("half-2", "baselines", "second half of the chains", HMC, _draws(part="second")),
    _row("raw-1", "baselines", "1 raw draw", HMC, _draws(1, 20)),
    _row("raw-5", "baselines", "5 raw draws", HMC, _draws(5, 20)),
    _row("raw-20", "baselines", "20 raw draws", HMC, _draws(20, 20)),
    _row("map", "baselines", "one MAP network", ENSEMBLE, _draws(1, 10)),
    _row("one-draw", _OURS, "weights, one draw, diagonal", aligned("hmc", "one-draw"), _gaussian()),
    _row("mean-diag", _OURS, "iterated mean, diagonal", _MEAN, _gaussian(prune=True)),
    _row("gauss-diag", _OURS, "iterated Gaussian, diagonal", aligned("hmc", "gaussian"), _gaussian()),
    _row("mean-full", _OURS, "iterated mean, full", _MEAN, _gaussian(covariance="full", shrinkage=0.0)),
    _row("mean-shrunk", _OURS, "iterated mean, full, shrunk", _MEAN, _gaussian(covariance="full")),
    _row("paper-shrunk", _OURS, "activations, one draw, full, shrunk", _PAPER, _gaussian(covariance="full")),
    _row("refined", _OURS, "ELBO from the aligned mean, diagonal", REFINED, _draws()),
    _row("distilled", _OURS, "distilled predictions, diagonal", DISTILLED, _draws()),
)
# fmt: on


def cells(config: CompactConfig) -> tuple[Cell, ...]:
    """List the cells in the order in which they run."""

    def cell(key: str, settings: Any, *inputs: str) -> Cell:
        return Cell.of(key, settings, config.seed, inputs)

    def settings(row: Representation) -> RowSettings:
        own = row.settings
        return replace(own, num=config.draws) if own.kind == "gaussian" else own

    distilled = Distilling(config.distillation, config.draws)
    return (
        cell(HMC, config.hmc),
        cell(ENSEMBLE, config.ensemble),
        cell(MEANFIELD, config.advi),
        *(cell(aligned("hmc", name), rule.settings, HMC) for name, rule in RULES.items()),
        *(cell(aligned("ensemble", r), RULES[r].settings, ENSEMBLE) for r in ("paper", "mean")),
        cell(REFINED, config.advi, aligned("hmc", "mean")),
        cell(DISTILLED, distilled, HMC, aligned("hmc", "mean")),
        *(cell(row.key, settings(row), row.source) for row in rows(config)),
        cell(DYNAMICS, config.pairs),
        cell(SWAPS, config.pairs),
    )
