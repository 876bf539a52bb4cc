"""The design, and the making of the cells: families, methods and how many simulations; each cell is a calibration."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.quantity import aligned_quantity
from onebasin.analysis.gaussian import fit_gaussian
from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference import Advi, Family, Mclmc, Nuts, Symmetrised
from onebasin.inference.calibration.calibrate import MEASURES, calibrate
from onebasin.inference.calibration.drawn import simulated
from onebasin.inference.calibration.result import Calibration
from onebasin.inference.methods import as_word
from onebasin.models import (
    BayesianNetwork,
    Gaussian,
    Network,
    NetworkTarget,
    NormalPrior,
    Parametrisation,
    Target,
)
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.posteriors import schema
from onebasin.truth.problems import PROBLEMS

from ..lab import Cell, Context, Options
from ..lab.posteriors import Distilling, tree_of

NAME = "calibration"
NETWORKS = {
    "net-free": Parametrisation(),
    "net-givens": Parametrisation(weights="givens"),
    "net-ordered": Parametrisation(biases="ordered"),
    "net-givens+ordered": Parametrisation(weights="givens", biases="ordered"),
}
"""Two ReLU units at 15 inputs of two numbers, noise inferred."""
PROGRAMS = ("mixture-2", "item-response-2pl", "hidden-markov")
"""Problems whose families are calibrated."""
OF_SMALL_MODES = ("hidden-markov",)
"""Families with modes of next to no probability, in which chains from random points get stuck."""
FAMILIES = (*NETWORKS, *PROGRAMS)
APPROXIMATED = "net-free"
"""The family on which approximations are calibrated."""
MADE_OF_DRAWS = ("gaussian", "distilled")
"""Approximations that are made of chains' draws."""
STEPS = {"mclmc-short": 5e-4, "mclmc": 0.03, "mclmc-long": 0.5}
"""Energy variance per parameter that sets the step size of microcanonical chains; that of networks is 0.03."""


@dataclass(frozen=True)
class Calibrating:
    """Settings of a cell: how many simulations, those of the method, and of what is made of its draws."""

    simulations: int
    method: Any
    after: Any = None


@dataclass(frozen=True)
class CalibrationConfig:
    """The study's settings.

    Chains of networks have those of `networks`, of `OF_SMALL_MODES` those of `from_optima`, and of other programs those
    of `nuts`.
    """

    seed: int
    simulations: int
    families: tuple[str, ...]
    engines: tuple[str, ...]
    nuts: Nuts
    networks: Nuts
    from_optima: Nuts
    mclmc: Mclmc
    advi: Advi
    symmetrised: Symmetrised
    distilled: DistillationSettings

    def settings_of(self, family: str, method: str) -> Calibrating:
        """The settings of a method on a family."""
        how: Any = self.nuts
        if family in NETWORKS:
            how = self.networks
        elif family in OF_SMALL_MODES:
            how = self.from_optima
        if method in STEPS:
            how = replace(self.mclmc, energy_variance=STEPS[method])
        elif method == "symmetrised":
            how = self.symmetrised
        elif method in ("meanfield", "fullrank"):
            how = self.advi
        return Calibrating(self.simulations, how, self.distilled if method == "distilled" else None)


_PROGRAMS = Nuts(chains=2, warmup=250, draws=250, target_acceptance=0.9, max_tree_depth=8)
DEFAULT = CalibrationConfig(
    seed=0,
    simulations=200,
    families=FAMILIES,
    engines=("numpyro", "stan"),
    nuts=_PROGRAMS,
    networks=Nuts(chains=4, warmup=1000, draws=2000, target_acceptance=0.9, max_tree_depth=8),
    from_optima=replace(_PROGRAMS, init="optimum"),
    mclmc=Mclmc(chains=4, warmup=4000, draws=500, thin=80),
    advi=Advi(iterations=3000, draws=250),
    symmetrised=Symmetrised(steps=3000, draws=250),
    distilled=DistillationSettings(iterations=3000, batch_size=64, points=2000),
)
_QUICK = Nuts(chains=1, warmup=100, draws=100, max_tree_depth=5)
QUICK = replace(
    DEFAULT,
    simulations=50,
    families=("net-free",),
    engines=("numpyro",),
    nuts=_QUICK,
    networks=_QUICK,
    from_optima=replace(_QUICK, init="optimum"),
    mclmc=Mclmc(chains=1, warmup=500, draws=100, thin=5),
    advi=Advi(iterations=300, draws=100),
    symmetrised=Symmetrised(steps=300, draws=100),
    distilled=DistillationSettings(iterations=100, batch_size=16, points=100),
)


def configure(options: Options) -> CalibrationConfig:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "datasets", "full", "splits", "parametrisations")
    base = QUICK if options.quick else DEFAULT
    engines = base.engines if options.engine is None else options.engines("both")
    return replace(
        base,
        seed=options.seed,
        engines=engines,
        families=options.labels("problems", dict.fromkeys(FAMILIES), base.families),
        nuts=options.sampler(base.nuts),
        networks=options.sampler(base.networks),
        from_optima=options.sampler(base.from_optima),
    )


def cells(config: CalibrationConfig) -> tuple[Cell, ...]:
    """List the cells: networks by NUTS, then approximations, then the programs."""
    networks = [name for name in config.families if name in NETWORKS]
    programs = [name for name in config.families if name in PROGRAMS]
    listed = [(family, "nuts", engine) for engine in config.engines for family in networks]
    if APPROXIMATED in networks:
        methods = ("meanfield", "fullrank", "symmetrised", *STEPS, *MADE_OF_DRAWS)
        listed += [(APPROXIMATED, method, "numpyro") for method in methods]
    listed += [(family, "nuts", engine) for family in programs for engine in config.engines]
    return tuple(
        Cell(family, method, engine, config.settings_of(family, method), config.seed)
        for family, method, engine in listed
    )


@cache
def family_of(name: str) -> Family:
    """The family of a name, with its parameters aligned as test quantities."""
    if name in NETWORKS:
        x = np.random.default_rng(0).normal(size=(15, 2))
        prior = NormalPrior()
        model = BayesianNetwork(Network(2, (2,)), Gaussian(), prior, NETWORKS[name])
        family = Family.of_network(model, x, name=name)
    else:
        make = PROBLEMS[name].family
        assert make is not None, "problems here have families"
        family = make()
    symmetry = family.condition(simulated(family, 0, 0).data).symmetry
    if not any(block.keeps_density for block in symmetry):
        return family
    return family.looking_at({"aligned": aligned_quantity(symmetry)})


def target(config: CalibrationConfig, cell: Cell) -> Target:
    """Condition the cell's family on the data of its first simulation."""
    family = family_of(cell.problem)
    return family.condition(simulated(family, cell.seed, 0).data)


After = Callable[[Target, xr.DataTree, int], xr.DataTree]
GROUP = "calibration"
_TEXT = "found"
_SAMPLED = 500
"""Draws of a Gaussian that is made of draws."""


def make(config: CalibrationConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Calibrate a cell's method on its family."""
    how: Calibrating = cell.settings
    after: After | None = None  # replaces the draws by others, which are then judged
    if cell.method in MADE_OF_DRAWS:
        after = gaussian if cell.method == "gaussian" else distilled(how.after)
    found = calibrate(
        family_of(cell.problem),
        as_word(cell.method, how.method),
        cell.engine,
        simulations=how.simulations,
        seed=cell.seed,
        folder=context.checkpoint,
        after=after,
        progress=context.progress,
    )
    tree = to_tree(found)
    if context.checkpoint is not None:
        for file in context.checkpoint.glob("ranks-*.npz"):
            file.unlink()
    return tree


def gaussian(target: Target, posterior: xr.DataTree, seed: int) -> xr.DataTree:
    """Align the draws, fit one Gaussian to them, and sample it."""
    aligned = align(posterior, equal_modes(target.symmetry), gauge="keep", threads=1).posterior
    return fit_gaussian(aligned, "full").sample(_SAMPLED, seed=seed, predictive_mb=0)


def distilled(settings: DistillationSettings) -> After:
    """Distil the draws into one Gaussian, which predicts as they do, and sample it."""

    def distilled(target: Target, posterior: xr.DataTree, seed: int) -> xr.DataTree:
        assert isinstance(target, NetworkTarget), "only a network is approximated"
        return Distilling(settings, _SAMPLED).make(posterior, target, seed)

    return distilled


def to_tree(found: Calibration) -> xr.DataTree:
    """Lay out what was found as what a file can keep."""
    dims = ("simulation", "quantity")
    arrays: dict[str, Any] = {name: (dims, getattr(found, name)) for name in MEASURES}
    arrays["divergences"] = ("simulation", found.divergences)
    told = {
        name: getattr(found, name)
        for name in ("family", "method", "engine", "settings", "seed", "names", "failures")
    }
    arrays[_TEXT] = ((), json.dumps(told))
    return tree_of({schema.POSTERIOR: xr.Dataset(), GROUP: xr.Dataset(arrays)}, {})


def from_tree(tree: xr.DataTree) -> Calibration:
    """Read back what `to_tree` wrote."""
    group = tree[GROUP].to_dataset()
    told = json.loads(str(group[_TEXT].values))
    told |= {name: tuple(told[name]) for name in ("names", "failures")}
    arrays: dict[str, Any] = {
        name: np.asarray(group[name].values) for name in (*MEASURES, "divergences")
    }
    return Calibration(**told, **arrays)
