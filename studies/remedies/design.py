"""The design and the cells: the remedies, two sizes of the experiment, and their making."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.gaussian import fit_gaussian
from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference import Advi, Ensemble, Mclmc, Nuts, Symmetrised
from onebasin.inference.density.evaluate import log_density
from onebasin.models import NetworkTarget
from onebasin.models.symmetry.blocks import Exchangeable, blocks_of
from onebasin.posteriors import schema
from onebasin.truth.problems.images import Images

from ..lab import Cell, Context, Options, Outcomes
from ..lab.making import sample, symmetrise
from ..lab.posteriors import Distilling, posterior_mean, tree_of
from .problems import PROBLEMS, condition, parts, run_seed

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


@dataclass(frozen=True)
class RunCell(Cell):
    """A posterior of one problem in one run."""

    dataset: str = ""  # Name of the problem.
    run: int = 1  # Number of the run, from 1.


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


def cells(config: RemediesConfig) -> tuple[RunCell, ...]:
    """List the cells, run by run and problem by problem: what others are made from comes first."""
    in_order = (REMEDIES[0], ALIGNED, *REMEDIES[1:])
    engines = {("plain", remedy.method): remedy.engine for remedy in in_order}
    return tuple(
        RunCell(
            remedy.model,
            remedy.method,
            remedy.engine,
            config.settings_of(remedy.method),
            run_seed(config.seed, run),
            inputs=tuple(
                f"{problem}-run{run}.{model}.{method}.{engines[model, method]}"
                for model, method in remedy.inputs
            ),
            data=f"{problem}-run{run}",
            dataset=problem,
            run=run,
        )
        for run in range(1, config.runs + 1)
        for problem in config.problems
        for remedy in in_order
    )


def target(config: RemediesConfig, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on its run's training part."""
    assert isinstance(cell, RunCell), "cells are made here"
    data = parts(cell.dataset, config.images, cell.seed).train
    return condition(cell.dataset, cell.problem, config.hidden, data)


BOUND = "bound"
"""Attribute of a Gaussian's posterior: its ELBO, in nats."""


def make(config: RemediesConfig, cell: Cell, outcomes: Outcomes, context: Context) -> xr.DataTree:
    """Make a cell's posterior."""
    from onebasin.inference import infer

    target, settings = context.target, cell.settings
    assert isinstance(target, NetworkTarget), "every cell has a network"
    inputs = [outcomes.by_key(key) for key in cell.inputs]
    if isinstance(settings, Fits):
        fits = [
            infer(
                target,
                settings.advi,
                engine="numpyro",
                seed=cell.seed + number,
                predictive_mb=0,
                check_symmetry=False,
                progress=context.progress,
            )
            for number in range(settings.fits)
        ]
        return side_by_side(fits)
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
