"""The design and the cells: data sets and networks, the remedies, two sizes of the experiment, and their making.

Convention: a run k of the study has the seed `seed` + 100 (k - 1), for draws and splits of the data as for samplers.
Inputs and targets of regressions are standardised on the training part.

All networks have one hidden layer of ReLU units and N(0, 1) priors. One layer, so that chains of NUTS agree and are a
truth to compare approximations with; ReLU, since unit norms need an activation that is positively homogeneous.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.gaussian import fit_gaussian
from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference import Advi, Ensemble, Mclmc, Nuts, Symmetrised
from onebasin.inference.density.evaluate import log_density
from onebasin.models import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NetworkTarget,
    NormalPrior,
    Parametrisation,
)
from onebasin.models.data import Dataset, Split, load_data, own_split, split, standardise
from onebasin.models.symmetry.blocks import Exchangeable, blocks_of
from onebasin.posteriors import schema
from onebasin.truth.problems.images import Images, image_split

from ..lab import Cell, Context, Options
from ..lab.making import sample, symmetrise
from ..lab.posteriors import Distilling, posterior_mean, tree_of

RUN_SEEDS = 100
"""By how much the seeds of two runs differ: more than there are fits."""


PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        "sinc": "128 noisy points of a scaled sinc function and 128 to test, as in the paper. A constant stands next "
        "to the input, since a unit vector of one number has no angle",
        "digits": "Handwritten digits of 8 x 8 pixels (UCI)",
        "auto-mpg": "Fuel consumption of 392 cars (UCI), split 80 to 20: the one regression table of UCI's that comes "
        "with an installed package and may be used without second thoughts, so that everyone can run this",
    }
)
"""The data sets, in words."""


@lru_cache(maxsize=8)
def parts(problem: str, images: Images, seed: int) -> Split:
    """Training and test part of a problem."""
    if problem == "digits":
        return image_split(images, seed)
    if problem == "sinc":
        data = standardise(own_split(load_data("sinc", seed=seed)))
        return Split(train=_with_constant(data.train), test=_with_constant(data.test))
    data = standardise(split(load_data(problem), test_fraction=0.2, seed=seed))
    return Split(train=data.train, test=data.test)


def _with_constant(data: Dataset) -> Dataset:
    x = np.column_stack([data.x, np.ones(data.num_obs)])
    return replace(data, x=x, feature_names=(*data.feature_names, "constant"))


def condition(problem: str, model: str, hidden: int, data: Dataset) -> NetworkTarget:
    """Condition a model with so many hidden units on a problem's training part."""
    network = Network(
        data.in_dim,
        (hidden,),
        data.out_dim,
        "relu",
        skip="orthogonal" if model == "skips" else None,
    )
    prior = NormalPrior()
    if model == "unit-norm":
        # A unit is as steep, and its kink as near, as a free one's, whose incoming weights have a norm of about the
        # root of their number: so the constraint takes a freedom away, and does not change what functions are likely.
        norm = math.sqrt(data.in_dim)
        prior = NormalPrior((1.0, norm), (1 / norm, 1.0))
    stated = BayesianNetwork(
        network,
        Categorical() if data.task == "classification" else Gaussian(noise_sd=None),
        prior,
        Parametrisation(  # `unit_vector` has no seam: samplers and Gaussians both take it well
            weights="unit_vector" if model == "unit-norm" else "free",
            biases="ordered" if model == "ordered" else "free",
        ),
    )
    return stated.condition(data.x, data.y, name=f"remedies-{problem}-{model}")


NAME = "remedies"


@dataclass(frozen=True)
class Fits:
    """Mean-field fits, each with its own start and noise, which differ in their seeds alone."""

    fits: int
    advi: Advi


@dataclass(frozen=True)
class Aligning:
    """Settings of the alignment of draws: `analysis.alignment.align`, modulo permutations."""

    reference: str = "gaussian"
    gauge: str = "keep"


@dataclass(frozen=True)
class OneGaussian:
    """The Gaussian that is fitted to aligned draws, and how many draws of it predict."""

    covariance: str
    draws: int


class Remedy(NamedTuple):
    """A row of the tables: which model, by which method; `inputs` are the cells of its run that it is made from."""

    model: str
    method: str
    label: str
    inputs: tuple[tuple[str, str], ...] = ()
    engine: str = "numpyro"

    @property
    def name(self) -> str:
        """Its name in the frames."""
        return f"{self.model}.{self.method}"

    @property
    def truth(self) -> str:
        """The model whose chains are the truth for its functions; order changes no function's probability."""
        return "plain" if self.model == "ordered" else self.model


_NUTS, _ALIGNED = ("plain", "nuts"), ("plain", "aligned")
ALIGNED = Remedy("plain", "aligned", "NUTS, aligned", (_NUTS,), "analysis")
"""Draws in one labelling, from which Gaussians are made; they predict as they did before."""
REMEDIES: tuple[Remedy, ...] = (
    Remedy("plain", "nuts", "NUTS: the truth"),
    Remedy("plain", "mclmc", "MCLMC"),
    Remedy("plain", "meanfield", "nothing: mean-field VI"),
    Remedy("ordered", "meanfield", "ordered biases, mean-field VI"),
    Remedy("unit-norm", "meanfield", "unit-norm weights, mean-field VI"),
    Remedy("skips", "meanfield", "orthogonal skips, mean-field VI"),
    Remedy("plain", "symmetrised", "symmetrised mean-field VI"),
    Remedy("plain", "gaussian", "NUTS aligned, one Gaussian, diagonal", (_ALIGNED,), "analysis"),
    Remedy("plain", "gaussian-full", "NUTS aligned, one Gaussian, full", (_ALIGNED,), "analysis"),
    Remedy("plain", "distilled", "NUTS distilled, one Gaussian", (_NUTS, _ALIGNED), "analysis"),
    Remedy("plain", "ensemble", "deep ensemble"),
    Remedy("unit-norm", "nuts", "NUTS, unit-norm weights: their truth"),
    Remedy("skips", "nuts", "NUTS, orthogonal skips: their truth"),
)
BY_NAME: Mapping[str, Remedy] = MappingProxyType({remedy.name: remedy for remedy in REMEDIES})


@dataclass(frozen=True)
class RemediesConfig:
    """The study's settings; run k has the seed `seed` + 100 (k - 1), for data and for all methods."""

    seed: int
    runs: int
    problems: tuple[str, ...]
    images: Images
    hidden: int
    nuts: Nuts
    mclmc: Mclmc
    meanfield: Fits
    symmetrised: Symmetrised
    ensemble: Ensemble
    gaussian: OneGaussian
    gaussian_full: OneGaussian
    distilled: Distilling
    aligned: Aligning = Aligning()

    def settings_of(self, method: str) -> Any:
        """The settings of a method."""
        return getattr(self, method.replace("-", "_"))


def _vi(fits: int, steps: int, draws: int) -> tuple[Fits, Symmetrised]:
    """Settings of plain and of symmetrised fits: the same objective, annealing, steps, starts and draws."""
    both: dict[str, Any] = {
        "elbo_samples": 256,
        "evaluate_every": steps // 20,
        "tolerance": 0.0,
        "draws": draws,
        "learning_rate": 0.02,
        "schedule": "cosine",
        "anneal": 0.5,
        "local_reparametrisation": None,
        "init": "he",
        "init_scale": 0.05,
        "dtype": "float32",
    }
    advi = Advi(iterations=steps, gradient_samples=8, **both)
    return Fits(fits, advi), Symmetrised(fits=fits, steps=steps, samples=8, **both)


_PLAIN, _SYMMETRISED = _vi(fits=4, steps=5000, draws=500)
DEFAULT = RemediesConfig(
    seed=0,
    runs=2,
    problems=tuple(PROBLEMS),
    images=Images("digits", side=8, train=1000),
    hidden=16,
    nuts=Nuts(chains=4, warmup=500, draws=500, init_radius=1.0),
    mclmc=Mclmc(chains=4, draws=500),
    meanfield=_PLAIN,
    symmetrised=_SYMMETRISED,
    ensemble=Ensemble(members=20, epochs=1000, learning_rate=0.01),
    gaussian=OneGaussian("diagonal", 1000),
    gaussian_full=OneGaussian("full", 1000),
    distilled=Distilling(DistillationSettings(iterations=6000, learning_rate=0.03), 1000),
)
_PLAIN, _SYMMETRISED = _vi(fits=2, steps=1000, draws=200)
QUICK = replace(
    DEFAULT,
    runs=1,
    images=Images("digits", side=4, train=300),
    hidden=8,
    nuts=Nuts(chains=2, warmup=150, draws=150, init_radius=1.0, max_tree_depth=7),
    mclmc=Mclmc(chains=2, warmup=1000, draws=200, thin=5),
    meanfield=_PLAIN,
    symmetrised=replace(_SYMMETRISED, report_draws=50, report_permutations=10),
    ensemble=Ensemble(members=10, epochs=200, learning_rate=0.02),
    gaussian=OneGaussian("diagonal", 300),
    gaussian_full=OneGaussian("full", 300),
    distilled=Distilling(
        DistillationSettings(iterations=500, points=1000, batch_size=64, learning_rate=0.03), 300
    ),
)


def configure(options: Options) -> RemediesConfig:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "datasets", "engine", "full", "splits", "parametrisations")
    base = QUICK if options.quick else DEFAULT
    return replace(
        base,
        seed=options.seed,
        problems=options.labels("problems", PROBLEMS, base.problems),
        nuts=options.sampler(base.nuts),
    )


def cells(config: RemediesConfig) -> tuple[Cell, ...]:
    """List the cells, run by run and problem by problem, which is their case; what others are made from comes first."""
    in_order = (REMEDIES[0], ALIGNED, *REMEDIES[1:])
    engines = {("plain", remedy.method): remedy.engine for remedy in in_order}
    return tuple(
        Cell(
            remedy.model,
            remedy.method,
            remedy.engine,
            config.settings_of(remedy.method),
            config.seed + RUN_SEEDS * (run - 1),
            inputs=tuple(
                f"{problem}-run{run}.{model}.{method}.{engines[model, method]}"
                for model, method in remedy.inputs
            ),
            data=f"{problem}-run{run}",
            number=run,
            case=problem,
        )
        for run in range(1, config.runs + 1)
        for problem in config.problems
        for remedy in in_order
    )


def target(config: RemediesConfig, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on its run's training part."""
    data = parts(cell.case, config.images, cell.seed).train
    return condition(cell.case, cell.problem, config.hidden, data)


BOUND = "bound"
"""Attribute of a Gaussian's posterior: its ELBO, in nats."""


def make(config: RemediesConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Make a cell's posterior."""
    target, settings, inputs = context.target, cell.settings, context.inputs
    assert isinstance(target, NetworkTarget), "every cell has a network"
    if isinstance(settings, Fits):
        alike = (replace(cell, seed=cell.seed + number) for number in range(settings.fits))
        return side_by_side([sample(one, context, settings.advi) for one in alike])
    if isinstance(settings, Symmetrised):
        return symmetrise(cell, context, settings)
    if isinstance(settings, Aligning):
        # Positive scalings are no symmetry of the posterior: its prior breaks them.
        permutations = blocks_of(target.symmetry, Exchangeable)
        aligned = align(inputs[0], permutations, **asdict(settings)).posterior
        aligned.attrs.pop(schema.WALL_TIME)  # that of the draws; the cell has its own
        return aligned
    if isinstance(settings, OneGaussian):
        found = fit_gaussian(inputs[0], settings.covariance)
        tree = found.sample(settings.draws, seed=cell.seed, predictive_mb=0)
        values = log_density(target, tree, engine="numpyro").values - found.log_density(tree)
        tree.attrs[BOUND] = float(values.mean())
        return tree
    if isinstance(settings, Distilling):
        draws, aligned = inputs
        return settings.make(draws, target, cell.seed, start=posterior_mean(aligned))
    return sample(cell, context)


def side_by_side(trees: Sequence[xr.DataTree]) -> xr.DataTree:
    """Make one posterior of several fits, a chain each, with their parameters and the traces of their ELBOs."""
    groups = {
        name: xr.concat([tree[name].to_dataset() for tree in trees], "chain").assign_coords(
            chain=np.arange(len(trees))
        )
        for name in (schema.POSTERIOR, schema.SAMPLE_STATS)
    }
    fits = [tree[schema.VARIATIONAL].to_dataset() for tree in trees]
    iteration = fits[0][schema.ITERATION]  # no fit stops early, so that all have the same
    chains = xr.concat([fit.drop_vars(schema.ITERATION) for fit in fits], "chain")
    groups[schema.VARIATIONAL] = chains.assign(iteration=iteration)
    attrs = dict(trees[0].attrs)
    for name in (schema.WALL_TIME, schema.GRADIENT_EVALUATIONS):
        attrs[name] = sum(tree.attrs[name] for tree in trees)
    attrs[schema.CONVERGED] = min(tree.attrs[schema.CONVERGED] for tree in trees)
    return tree_of(groups, attrs)
