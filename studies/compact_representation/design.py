"""The design: three sizes of the experiment, and the cells that each is made of.

Cells are, in this order: what is sampled or trained (`hmc`, `ensemble`, `meanfield`), its draws aligned by
several rules, Gaussians fitted through the ELBO or through predictions, a row of the table for each
representation, and the trained pairs of networks behind the paper's Figures 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from analysis.distillation import DistillationSettings
from inference.settings import AdviSettings, EnsembleSettings, HmcSettings
from models import BayesianNetwork, Categorical, Network, NetworkTarget
from models.data import Dataset, Split, load, own_split, split

from ..study import Cell, Options

NAME = "compact-representation"
MADE = "analysis"
"""Engine of a cell that is computed from others."""


@dataclass(frozen=True)
class Size:
    """What is inferred.

    Attributes
    ----------
    data : str
        Name of the data set.
    side : int
        Images are averaged down to this many pixels a side.
    hidden : int
        Units of the hidden layer.
    train : int or None
        Training images; None to take those that the data set sets apart.
    """

    data: str
    side: int
    hidden: int
    train: int | None


@dataclass(frozen=True)
class AlignSettings:
    """How draws are aligned: see `analysis.alignment.align`."""

    reference: str
    cost: str
    gauge: str = "keep"


@dataclass(frozen=True)
class RowSettings:
    """A representation whose predictions make a row.

    Attributes
    ----------
    kind : {"draws", "gaussian"}
        Draws of the posterior that it is made from, or of a Gaussian fitted to them.
    num : int or None
        Draws; None for all of them.
    repeats : int
        Different choices of draws, over which the row's numbers are averaged.
    covariance, rank, shrinkage
        Of the Gaussian: see `analysis.unimodal.fit_gaussian`.
    part : {"", "first", "second"}
        Half of the chains (of the draws, if there is one chain) to look at.
    prune : bool
        Whether the mean is pruned by standard deviation, for the paper's Figure 5.
    """

    kind: str
    num: int | None = None
    repeats: int = 1
    covariance: str = "diagonal"
    rank: int = 20
    shrinkage: float | None = None
    part: str = ""
    prune: bool = False


@dataclass(frozen=True)
class PairSettings:
    """Trained pairs of networks.

    Attributes
    ----------
    epochs : int
        Passes over the data.
    batch_size, learning_rate
        Of Adam.
    runs : int
        Pairs for every number of transpositions.
    swaps : tuple of int
        Transpositions applied to the initial weights; of no more than the hidden units less one.
    points : int
        Networks on the line between two, ends included.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    runs: int
    swaps: tuple[int, ...]
    points: int = 25


@dataclass(frozen=True)
class Config:
    """The study's settings.

    Attributes
    ----------
    seed : int
        Of data, samplers and choices.
    size : Size
        Data and network.
    hmc, ensemble, advi, distillation, pairs
        Settings of what is run.
    draws : int
        Draws of a Gaussian from which its predictions are averaged.
    """

    seed: int
    size: Size
    hmc: HmcSettings
    ensemble: EnsembleSettings
    advi: AdviSettings
    distillation: DistillationSettings
    pairs: PairSettings
    draws: int = 1000


QUICK = Config(
    seed=0,
    size=Size("digits", side=8, hidden=16, train=1000),
    hmc=HmcSettings(
        chains=4, warmup=400, draws=500, trajectory_length=1.5, metric="unit", init_radius=1.0
    ),
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
        chains=1,
        warmup=200,
        draws=1000,
        trajectory_length=0.5,
        metric="unit",
        init_radius=0.05,
        dtype="float32",
    ),
    ensemble=EnsembleSettings(members=20, epochs=30, batch_size=500, learning_rate=0.001),
    advi=AdviSettings(
        iterations=20_000,
        gradient_samples=2,
        learning_rate=0.005,
        tolerance=1e-6,
        batch_size=500,
        draws=300,
        dtype="float32",
    ),
    pairs=PairSettings(20, 500, 0.001, runs=5, swaps=(0, 32, 64, 128, 256, 384, 511)),
    draws=300,
)

PRECISION_RANKS = (20, 200)

ALIGNMENTS = {
    "paper": AlignSettings("draw", "activations"),
    "one-draw": AlignSettings("draw", "weights"),
    "mean": AlignSettings("mean", "weights"),
    "gaussian": AlignSettings("gaussian", "weights"),
}
"""The paper's rule, plain Git Re-Basin, and the iterated references."""


def configure(options: Options) -> Config:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "engine", "splits", "parametrisations")
    base = QUICK if options.quick else FULL if options.full else DEFAULT
    given = {name: getattr(options, name) for name in ("chains", "warmup", "draws")}
    hmc = replace(base.hmc, **{n: v for n, v in given.items() if v is not None})
    return replace(base, seed=options.seed, hmc=hmc)


def key(problem: str, method: str, engine: str = MADE) -> str:
    """Key of a cell."""
    return f"{problem}.{method}.{engine}"


HMC, ENSEMBLE, MEANFIELD = (
    key("posterior", m, "numpyro") for m in ("hmc", "ensemble", "meanfield")
)
REFINED = key("hmc-mean", "meanfield", "numpyro")
DISTILLED = key("hmc", "distilled")
DYNAMICS, SWAPS = key("pair", "dynamics"), key("pair", "swaps")


def aligned(source: str, rule: str) -> str:
    """Key of the aligned draws of `hmc` or `ensemble`."""
    return key(source, f"aligned-{rule}")


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes
    ----------
    name : str
        Short name, used in keys.
    group : str
        What it stands with: a heading.
    label : str
        What it is, for a reader.
    source : str
        Key of the posterior that it is made from.
    settings : RowSettings
        How.
    """

    name: str
    group: str
    label: str
    source: str
    settings: RowSettings

    @property
    def key(self) -> str:
        """Key of its cell."""
        return key(self.name, "row")


def _gaussian(covariance: str = "diagonal", **how: Any) -> RowSettings:
    return RowSettings("gaussian", covariance=covariance, **how)


def rows(config: Config) -> tuple[Row, ...]:
    """List the table's rows."""
    draws = RowSettings("draws")
    paper, mean = aligned("hmc", "paper"), aligned("hmc", "mean")
    hmc, baseline, ours = "HMC, the paper's columns", "baselines", "one Gaussian, other recipes"
    found = [
        Row("hmc", hmc, "samples (the truth)", HMC, draws),
        Row("hmc-qi", hmc, "q_i: draws as they are, diagonal", HMC, _gaussian(prune=True)),
        Row("hmc-qr", hmc, "q_r: activations, one draw, diagonal", paper, _gaussian(prune=True)),
        *_ensemble_rows("ensemble", ENSEMBLE),
        Row("vi", "VI, the paper's column", "mean-field, random start", MEANFIELD, draws),
        Row(
            "half-1", baseline, "first half of the chains", HMC, RowSettings("draws", part="first")
        ),
        Row(
            "half-2",
            baseline,
            "second half of the chains",
            HMC,
            RowSettings("draws", part="second"),
        ),
        *(
            Row(
                f"raw-{k}",
                baseline,
                f"{k} raw draw{'s' * (k > 1)}",
                HMC,
                RowSettings("draws", k, 20),
            )
            for k in (1, 5, 20)
        ),
        Row("map", baseline, "one MAP network", ENSEMBLE, RowSettings("draws", 1, 10)),
        Row(
            "one-draw", ours, "weights, one draw, diagonal", aligned("hmc", "one-draw"), _gaussian()
        ),
        Row("mean-diag", ours, "iterated mean, diagonal", mean, _gaussian(prune=True)),
        Row(
            "gauss-diag",
            ours,
            "iterated Gaussian, diagonal",
            aligned("hmc", "gaussian"),
            _gaussian(),
        ),
        Row(
            "mean-lowrank", ours, "iterated mean, low rank 20", mean, _gaussian("low-rank", rank=20)
        ),
        *_many_draws_rows(config, mean, ours),
        Row("mean-shrunk", ours, "iterated mean, full, shrunk", mean, _gaussian("full")),
        Row("paper-shrunk", ours, "activations, one draw, full, shrunk", paper, _gaussian("full")),
        Row("refined", ours, "ELBO from the aligned mean, diagonal", REFINED, draws),
        Row("distilled", ours, "distilled predictions, diagonal", DISTILLED, draws),
    ]
    return tuple(found)


def _ensemble_rows(name: str, source: str) -> tuple[Row, ...]:
    group = "ensemble, the paper's columns"
    paper, mean = aligned(name, "paper"), aligned(name, "mean")
    return (
        Row(name, group, "samples", source, RowSettings("draws")),
        Row(f"{name}-qi", group, "q_i: members as they are, diagonal", source, _gaussian()),
        Row(f"{name}-qr", group, "q_r: activations, one member, diagonal", paper, _gaussian()),
        Row(f"{name}-mean", group, "iterated mean, diagonal", mean, _gaussian()),
        Row(f"{name}-shrunk", group, "iterated mean, full, shrunk", mean, _gaussian("full")),
    )


def _many_draws_rows(config: Config, source: str, group: str) -> tuple[Row, ...]:
    """Fits without shrinkage need more draws than parameters."""
    if config.hmc.chains * config.hmc.draws <= num_parameters(config) + 1:
        return ()
    label = "iterated mean, low-rank precision"
    return (
        *(
            Row(
                f"mean-precision-{rank}",
                group,
                f"{label} {rank}",
                source,
                _gaussian("low-rank-precision", rank=rank),
            )
            for rank in PRECISION_RANKS
        ),
        Row("mean-full", group, "iterated mean, full", source, _gaussian("full", shrinkage=0.0)),
    )


def num_parameters(config: Config) -> int:
    """Count the network's weights and biases."""
    shapes = network(config).network.shapes.values()
    return sum(int(np.prod(shape)) for shape in shapes)


def cells(config: Config) -> tuple[Cell, ...]:
    """List the cells in the order in which they run."""
    return (
        _cell("posterior", "hmc", "numpyro", config.hmc, config),
        _cell("posterior", "ensemble", "numpyro", config.ensemble, config),
        _cell("posterior", "meanfield", "numpyro", config.advi, config),
        *(_cell("hmc", f"aligned-{r}", MADE, s, config, HMC) for r, s in ALIGNMENTS.items()),
        *(
            _cell("ensemble", f"aligned-{r}", MADE, ALIGNMENTS[r], config, ENSEMBLE)
            for r in ("paper", "mean")
        ),
        _cell("hmc-mean", "meanfield", "numpyro", config.advi, config, aligned("hmc", "mean")),
        _cell(
            "hmc",
            "distilled",
            MADE,
            Distillation(config.distillation, config.draws),
            config,
            HMC,
            aligned("hmc", "mean"),
        ),
        *(
            _cell(r.name, "row", MADE, _filled(r.settings, config), config, r.source)
            for r in rows(config)
        ),
        _cell("pair", "dynamics", MADE, config.pairs, config),
        _cell("pair", "swaps", MADE, config.pairs, config),
    )


@dataclass(frozen=True)
class Distillation:
    """Settings of the distilled Gaussian, and how many draws of it are kept."""

    distillation: DistillationSettings
    draws: int


def _filled(settings: RowSettings, config: Config) -> RowSettings:
    return replace(settings, num=config.draws) if settings.kind == "gaussian" else settings


def _cell(
    problem: str, method: str, engine: str, settings: Any, config: Config, *inputs: str
) -> Cell:
    return Cell(problem, method, engine, settings, config.seed, inputs=inputs)


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the network on the training images; every cell's result depends on them."""
    train = parts(config.size, config.seed).train
    return network(config).condition(train.x, train.y, name=f"{NAME}-{config.size.data}")


def network(config: Config) -> BayesianNetwork:
    """State the model: one hidden layer of ReLU units, N(0, 1) priors."""
    side, hidden = config.size.side, config.size.hidden
    return BayesianNetwork(Network(side**2, (hidden,), 10, "relu"), Categorical())


@lru_cache(maxsize=2)
def parts(size: Size, seed: int) -> Split:
    """Give training and test images, with pixels from 0 to 1."""
    data = load(size.data)
    if size.train is None:
        whole = own_split(data)
    else:
        whole = split(data, test_fraction=1 - size.train / data.num_obs, seed=seed)
    return Split(train=_shrunk(whole.train, size.side), test=_shrunk(whole.test, size.side))


def _shrunk(data: Dataset, side: int) -> Dataset:
    """Average blocks of pixels."""
    now = round(data.in_dim**0.5)
    blocks = data.x.reshape(-1, side, now // side, side, now // side).mean((2, 4))
    names = tuple(f"pixel_{row}_{column}" for row in range(side) for column in range(side))
    top = 16.0 if data.name == "digits" else 1.0
    return replace(data, x=blocks.reshape(-1, side**2) / top, feature_names=names, held_out=None)
