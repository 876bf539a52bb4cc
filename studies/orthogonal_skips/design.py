"""Design of the study: a network of five layers with its symmetry intact or broken in two ways, data sets, and cells.

The paper does not report the scale of its isotropic prior, the noise model, the scale of the sinc function, or the
optimiser. The outcome depends on the first three settings, so the study varies them (`Condition`). The optimiser is
Adam.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import xarray as xr

from onebasin.inference import Advi, Mclmc, Nuts
from onebasin.models import (
    BayesianNetwork,
    Gaussian,
    Network,
    NetworkTarget,
    NormalPrior,
    Parametrisation,
)
from onebasin.models.data import Dataset
from onebasin.models.load_data import sinc

from ..lab.run import sample
from ..lab.study import Cell, Context, Row, frame_of
from ..networks import check_number, to_tree
from ..options import Options

NAME = "orthogonal-skips"
MADE, NUMPYRO = "analysis", "numpyro"
"""Engines: `MADE` for cells that are computed from other cells, `NUMPYRO` for fitted or sampled cells."""
VI, TRUTH, CHECK, GAP = "meanfield", "nuts", "mclmc", "gap"
"""Methods: the approximation, the reference sampler on every data set, a second sampler, and equation 6 at a fit."""
ALL = "all"  # Layer name that stands for all layers together.

INSIDE, OUTSIDE = "inside", "outside"
"""Regions of test points: inside the data's range, |x| < 1, and outside it, 1 < |x| < 2."""


@dataclass(frozen=True)
class Variant:
    """A way to break the symmetry, or to leave it intact."""

    skip: str | None  # Skip connections of the network.
    biases: str  # Biases of the parametrisation.


VARIANTS: Mapping[str, Variant] = {
    "plain": Variant(None, "free"),
    "ordered": Variant(None, "ordered"),
    "orthogonal": Variant("orthogonal", "free"),
    "both": Variant("orthogonal", "ordered"),
}
"""Variants of the network: the four panels of the paper's Figure 1."""


@dataclass(frozen=True)
class Condition:
    """Settings that the paper does not report: the prior N(0, `prior_sd`^2), the noise, and the function."""

    name: str  # Name in the keys of cells.
    prior_sd: float = 0.3
    noise_sd: float | None = 0.2  # Known standard deviation of the noise; None to infer it.
    frequency: float = 1.5  # Zeros of the sinc function per unit of x.
    datasets: int = 1

    def __str__(self) -> str:
        noise = "noise inferred" if self.noise_sd is None else "noise known"
        return f"prior sd {self.prior_sd:g}, {noise}, sinc({self.frequency:g} x)"


@dataclass(frozen=True)
class GapSettings:
    """Settings of the estimate of equation 6 (`ob.mixture_gap`), at `points` steps of the training up to the last."""

    points: int = 8
    draws: int = 50
    permutations: int = 20


@dataclass(frozen=True)
class SkipsConfig:
    """Crossed factors and settings.

    Data set k uses the seed `seed` + k - 1 for data, fits and chains. All variants share it, so comparisons are paired.
    Samplers run only under the first condition, and MCLMC only on the first `mclmc_datasets` data sets.
    """

    seed: int
    variants: tuple[str, ...]
    conditions: tuple[Condition, ...]
    hidden: tuple[int, ...]
    vi: Advi
    nuts: Nuts
    mclmc: Mclmc
    mclmc_datasets: int
    gap: GapSettings

    def __post_init__(self) -> None:
        for condition in self.conditions:
            check_number("datasets", condition.datasets)


# fmt: off
DEFAULT = SkipsConfig(
    seed=0,
    variants=tuple(VARIANTS),
    conditions=(
        Condition("known", datasets=6),  # Fewer cannot give a paired p-value below 0.05.
        Condition("narrow-prior", prior_sd=0.1, datasets=6),
        Condition("inferred", noise_sd=None),
        Condition("wide-prior", prior_sd=1.0),
        Condition("three-zeros", frequency=3.0),
    ),
    hidden=(32,) * 5,
    vi=Advi(
        iterations=10_000, gradient_samples=8, elbo_samples=256, evaluate_every=500, tolerance=0.0, draws=1000,
        learning_rate=0.01, schedule="cosine", anneal=0.5, init="he", init_scale=0.05,
        trace_parameters=True, dtype="float32",
    ),
    nuts=Nuts(warmup=250, draws=250, max_tree_depth=8, init_radius=0.3, dtype="float32"),
    mclmc=Mclmc(draws=250, thin=60, start_steps=2000, energy_variance=1e-5, dtype="float32"),
    mclmc_datasets=1,
    gap=GapSettings(),
)
QUICK = replace(
    DEFAULT,
    variants=("plain", "both"),
    conditions=(Condition("known"),),
    hidden=(16,) * 3,
    vi=replace(DEFAULT.vi, iterations=1000, gradient_samples=4, elbo_samples=32, evaluate_every=250),
    nuts=replace(DEFAULT.nuts, chains=2, warmup=50, draws=50, max_tree_depth=6),
    mclmc_datasets=0,
    gap=GapSettings(points=2, draws=10, permutations=5),
)
PAPER = replace(
    DEFAULT,
    vi=replace(DEFAULT.vi, iterations=200_000, gradient_samples=64, evaluate_every=5000),
)
# fmt: on


def configure(options: Options) -> SkipsConfig:
    """Make the settings from the options of the command line."""
    options.refuse(NAME, "engine", "splits", "parametrisations")
    base = QUICK if options.quick else PAPER if options.full else DEFAULT
    conditions, number = base.conditions, options.datasets
    if number is not None:  # A maximum for conditions with fewer data sets.
        most = max(condition.datasets for condition in conditions)
        conditions = tuple(
            replace(c, datasets=number if c.datasets == most else min(c.datasets, number))
            for c in conditions
        )
    return replace(
        base,
        seed=options.seed,
        variants=options.labels("problems", VARIANTS, base.variants),
        conditions=conditions,
        nuts=options.sampler(base.nuts),
    )


def cells(config: SkipsConfig) -> tuple[Cell, ...]:
    """List the cells data set by data set, so that an interrupted run has complete data sets.

    Every variant has a fit, equation 6 at this fit if the variant has a symmetry, and the samplers. The case of a cell
    is the condition.
    """
    most = max(condition.datasets for condition in config.conditions)
    factors = [
        (number, condition, variant)
        for number in range(1, most + 1)
        for condition in config.conditions
        if number <= condition.datasets
        for variant in config.variants
    ]
    found = []
    for number, condition, variant in factors:
        data, seed = f"{condition.name}-set{number:02d}", config.seed + number - 1
        fit = Cell(variant, VI, NUMPYRO, config.vi, seed, data=data, number=number, case=condition)
        found.append(fit)
        if model(config, variant, condition).symmetry:
            gap = replace(fit, method=GAP, engine=MADE, settings=config.gap, inputs=(fit.key,))
            found.append(gap)
        if condition == config.conditions[0]:
            found.append(replace(fit, method=TRUTH, settings=config.nuts))
            if number <= config.mclmc_datasets:
                found.append(replace(fit, method=CHECK, settings=config.mclmc))
    return tuple(found)


def model(config: SkipsConfig, variant: str, condition: Condition) -> BayesianNetwork:
    """Make the network of a variant."""
    chosen = VARIANTS[variant]
    known = {} if condition.noise_sd is None else {"noise_sd": condition.noise_sd}
    return BayesianNetwork(
        Network(1, config.hidden, 1, "selu", skip=chosen.skip),
        Gaussian(**known),
        prior=NormalPrior(condition.prior_sd, condition.prior_sd),
        parametrisation=Parametrisation(biases=chosen.biases),
    )


def target(config: SkipsConfig, cell: Cell) -> NetworkTarget:
    """Condition the network of a cell on its data."""
    data = dataset(cell.seed, cell.case.frequency)
    return model(config, cell.problem, cell.case).condition(data.x, data.y, name=NAME)


@lru_cache(maxsize=4)
def dataset(seed: int, frequency: float) -> Dataset:
    """Draw the data: 128 points in [-1, 1], 128 held-out points, and the true function."""
    return sinc(seed=seed, frequency=frequency)


class SkipsPoints(NamedTuple):
    """Test points of one region: inputs, observations and the true function, each of shape (obs, 1)."""

    x: np.ndarray
    y: np.ndarray
    truth: np.ndarray


_OUTSIDE_STREAM = 1


@lru_cache(maxsize=4)
def points_of(seed: int, frequency: float) -> Mapping[str, SkipsPoints]:
    """Return the held-out points inside, and draw the same number outside."""
    data = dataset(seed, frequency)
    assert data.held_out is not None, "synthetic data have held-out points"
    assert data.truth is not None, "and a true function"
    inside, truth = data.held_out, data.truth
    rng = np.random.default_rng([seed, _OUTSIDE_STREAM])
    x = rng.uniform(1, 2, inside.x.shape) * rng.choice([-1.0, 1.0], inside.x.shape)
    mean = truth(x)
    y = mean + truth.noise_sd * rng.standard_normal(mean.shape)
    within = SkipsPoints(inside.x, np.asarray(inside.y), truth(inside.x))
    return {INSIDE: within, OUTSIDE: SkipsPoints(x, y, mean)}


def make(config: SkipsConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Make the posterior of a cell, or the frame `gap` of a fit."""
    if cell.method != GAP:
        return sample(cell, context)
    return to_tree({GAP: frame_of(gap_rows(config, cell, context.inputs[0]))})


def gap_rows(config: SkipsConfig, cell: Cell, fit: xr.DataTree) -> Iterator[Row]:
    """Bound KL[q_0 || q] at evenly spaced evaluations; yield one row for all layers and one per layer."""
    from onebasin.inference import mixture_gap

    iteration = fit["variational"].to_dataset()["iteration"].values
    for moment in moments(len(iteration), cell.settings.points):
        found = mixture_gap(
            target(config, cell),
            fit,
            evaluation=moment,
            draws=cell.settings.draws,
            permutations=cell.settings.permutations,
            seed=cell.seed,
        )
        when = {"iteration": iteration[moment], "end": moment == len(iteration) - 1}
        yield {**when, "layer": ALL, **asdict(found.total), "log_order": found.log_order}
        for layer in found.layers.to_dict("records"):
            yield {**when, **layer}


def moments(num: int, points: int) -> list[int]:
    """Choose evenly spaced evaluations that include the first and the last."""
    return sorted(set(np.linspace(0, num - 1, points).round().astype(int).tolist()))
