"""The design: the remedies, two sizes of the experiment, and its cells."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference import (
    Advi,
    Ensemble,
    Mclmc,
    Nuts,
    Symmetrised,
)
from onebasin.models import NetworkTarget
from onebasin.truth.problems.images import Images

from ..lab import Cell, Options
from .problems import PROBLEMS, condition, parts, run_seed

NAME = "remedies"


@dataclass(frozen=True)
class Fits:
    """Mean-field fits, each from a start and with noise of its own, which differ in their seeds alone."""

    fits: int
    advi: Advi


@dataclass(frozen=True)
class Aligning:
    """How draws are aligned: `analysis.alignment.align`, modulo permutations."""

    reference: str = "gaussian"
    gauge: str = "keep"


@dataclass(frozen=True)
class OneGaussian:
    """The Gaussian that is fitted to aligned draws, and how many draws of it predict."""

    covariance: str
    draws: int


@dataclass(frozen=True)
class Distilling:
    """How a Gaussian is distilled, and how many draws of it predict."""

    distillation: DistillationSettings
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
class Config:
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


def _default() -> Config:
    meanfield, symmetrised = _vi(fits=4, steps=5000, draws=500)
    return Config(
        seed=0,
        runs=2,
        problems=tuple(PROBLEMS),
        images=Images("digits", side=8, train=1000),
        hidden=16,
        nuts=Nuts(chains=4, warmup=500, draws=500, init_radius=1.0),
        mclmc=Mclmc(chains=4, draws=500),
        meanfield=meanfield,
        symmetrised=symmetrised,
        ensemble=Ensemble(members=20, epochs=1000, learning_rate=0.01),
        gaussian=OneGaussian("diagonal", 1000),
        gaussian_full=OneGaussian("full", 1000),
        distilled=Distilling(DistillationSettings(iterations=6000, learning_rate=0.03), 1000),
    )


def _quick() -> Config:
    meanfield, symmetrised = _vi(fits=2, steps=1000, draws=200)
    return replace(
        _default(),
        runs=1,
        images=Images("digits", side=4, train=300),
        hidden=8,
        nuts=Nuts(chains=2, warmup=150, draws=150, init_radius=1.0, max_tree_depth=7),
        mclmc=Mclmc(chains=2, warmup=1000, draws=200, thin=5),
        meanfield=meanfield,
        symmetrised=replace(symmetrised, report_draws=50, report_permutations=10),
        ensemble=Ensemble(members=10, epochs=200, learning_rate=0.02),
        gaussian=OneGaussian("diagonal", 300),
        gaussian_full=OneGaussian("full", 300),
        distilled=Distilling(
            DistillationSettings(iterations=500, points=1000, batch_size=64, learning_rate=0.03),
            300,
        ),
    )


DEFAULT, QUICK = _default(), _quick()


def configure(options: Options) -> Config:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "datasets", "engine", "full", "splits", "parametrisations")
    base = QUICK if options.quick else DEFAULT
    return replace(
        base,
        seed=options.seed,
        problems=options.labels("problems", PROBLEMS, base.problems),
        nuts=options.sampler(base.nuts),
    )


def cells(config: Config) -> tuple[RunCell, ...]:
    """List the cells, run by run and problem by problem: what others are made from comes first."""
    return tuple(
        _cell(config, problem, run, remedy)
        for run in range(1, config.runs + 1)
        for problem in config.problems
        for remedy in _in_order()
    )


def _in_order() -> Iterator[Remedy]:
    first, *others = REMEDIES
    yield from (first, ALIGNED, *others)


def _cell(config: Config, problem: str, run: int, remedy: Remedy) -> RunCell:
    data = f"{problem}-run{run}"
    keys = {("plain", r.method): f"{data}.plain.{r.method}.{r.engine}" for r in _in_order()}
    return RunCell(
        remedy.model,
        remedy.method,
        remedy.engine,
        config.settings_of(remedy.method),
        run_seed(config.seed, run),
        inputs=tuple(keys[name] for name in remedy.inputs),
        data=data,
        dataset=problem,
        run=run,
    )


def target(config: Config, cell: Cell) -> NetworkTarget:
    """Condition the cell's model on its run's training part."""
    assert isinstance(cell, RunCell), "cells are made here"
    data = parts(cell.dataset, config.images, cell.seed).train
    return condition(cell.dataset, cell.problem, config.hidden, data)
