"""The design and the cells: references, methods, what is added, and their making.

Chains have the reference's own target acceptance, tree depth and starts, and the length that a user would give them;
fits have their defaults and as many draws as the chains, so that their Monte Carlo error is no larger. A method of a
user's own is a callable that returns a posterior, or the file of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import xarray as xr

from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.base.checks import choose
from onebasin.base.errors import InferenceError, OnebasinError, StudyError
from onebasin.inference import Advi, Ensemble, Hmc, Laplace, Mclmc, Nuts, Pathfinder, Symmetrised
from onebasin.models import NetworkTarget, Target
from onebasin.models.numpyro_file import ModelFile, loaded
from onebasin.models.symmetry.blocks import Complement, Exchangeable, blocks_of
from onebasin.stan import StanError
from onebasin.truth import open_reference, references
from onebasin.truth.problems import PROBLEMS, Problem
from onebasin.truth.produce import sha256

from ..lab import Cell, CellFailed, Context, Options
from ..lab.making import sample, symmetrise
from ..lab.posteriors import Distilling

PLACE = "{reference}"
"""The part of a file's name that stands for the reference's name."""
ENGINE = "own"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*")
_FORM = "NAME=MODULE.py:FUNCTION or NAME=FILE.nc, such as mine=sampler.py:sample"


@dataclass(frozen=True)
class Added:
    """A method of a user's own."""

    name: str  # Its name in tables.
    path: str
    """Of the module, or of the posterior, where `{reference}` stands for the name of each."""
    function: str = ""  # Of the module; empty for a posterior's file.


@dataclass(frozen=True)
class Own:
    """The settings of an added method's cell: changed code, or a changed file, is another cell."""

    chains: ClassVar[int] = 4
    """A function may take as many cores as chains of ours do: unless asked for, nothing else is made meanwhile."""

    path: str
    function: str
    sha256: str


def parse(words: str, taken: tuple[str, ...]) -> Added:
    """Read what `--add` was given; a `StudyError` if it cannot be read, or its name is one of those `taken`."""
    name, equals, what = words.partition("=")
    if not (equals and what and _NAME.fullmatch(name)):
        raise StudyError(f"`--add` is {words!r}; give {_FORM}.")
    if name in taken:
        raise StudyError(
            f"`--add` names {name!r}, which is a method already; give it another name."
        )
    path, colon, function = what.rpartition(":")
    if colon and path.endswith(".py") and function.isidentifier():
        return Added(name, path, function)
    if what.endswith(".py"):
        raise StudyError(
            f"`--add` is {words!r}, which names no function of the module; give {_FORM}."
        )
    return Added(name, what)


def settings_for(added: Added, reference: str, *, alone: bool) -> Own:
    """Give the settings of an added method's cell; `alone` says whether this reference is the only one.

    It is a `StudyError` if there is no such file, or one file stands for the posteriors of several references.
    """
    if not added.function and PLACE not in added.path and not alone:
        raise StudyError(
            f"`--add` gives {added.name} one file, {added.path}, and there are several references: name one by --only, "
            f"or write {PLACE} into the file's name where it has that of the reference."
        )
    path = Path(added.path.replace(PLACE, reference))
    if not path.is_file():
        raise StudyError(f"`--add` gives {added.name} the file {path}, which does not exist.")
    return Own(str(path.resolve()), added.function, sha256(path))


def posterior_of(name: str, own: Own, target: Target, seed: int, reference: str) -> xr.DataTree:
    """Call a user's function with the target and a seed, or read a user's file.

    It is `CellFailed` if the module or its function cannot be had, it fails, or there is no posterior of the
    reference's model.
    """
    from onebasin.analysis.compare.reference.compare import check_run
    from onebasin.posteriors.view import as_view

    try:
        if own.function:
            with loaded(ModelFile(Path(own.path), own.function)) as sample:
                view = as_view(sample(target, seed), f"what {own.function} returned")
        else:
            view = as_view(own.path, own.path)
        check_run(view, open_reference(reference).known, reference)
        return view.tree.load()
    except (OnebasinError, AssertionError, TypeError, ValueError) as error:
        raise CellFailed(f"{name}: {error}") from error


CHAINS = Nuts(chains=4, warmup=1000, draws=1000)
SHORT = Nuts(chains=4, warmup=500, draws=500)
DRAWS = 4000
"""The number of draws of a fit, as many as of the chains."""


class LeaderboardRow(NamedTuple):
    """A row of the leaderboard."""

    label: str  # Its name in tables.
    engine: str  # Who makes it.
    settings: Callable[[Problem, bool], Any]
    """From the problem, and whether it is to be quick, to the method."""
    fits: Callable[[Target], bool] = lambda target: True
    """From a target to whether the method is for it."""
    inputs: tuple[str, ...] = ()  # Methods whose posterior of the same problem it is made from.


def _nuts(problem: Problem, quick: bool) -> Nuts:
    size = SHORT if quick else CHAINS
    return replace(problem.settings, chains=size.chains, warmup=size.warmup, draws=size.draws)


def _hmc(problem: Problem, quick: bool) -> Hmc:
    nuts = _nuts(problem, quick)
    names = ("chains", "warmup", "draws", "target_acceptance", "metric", "init_radius", "init")
    return Hmc(**{name: getattr(nuts, name) for name in names})


def _symmetrised(problem: Problem, quick: bool) -> Symmetrised:
    start: Any = "he" if _is_free_network(problem.target()) else "random"
    return Symmetrised(steps=2000 if quick else 10_000, draws=DRAWS, init=start)


def _sized(full: Any, quick: Any = None) -> Callable[[Problem, bool], Any]:
    """One method for all problems, and another where it is to be quick."""
    return lambda problem, is_quick: (quick or full) if is_quick else full


def _is_free_network(target: Target) -> bool:
    return isinstance(target, NetworkTarget) and target.model.parametrisation.label == "free"


_ADVI = _sized(Advi(draws=DRAWS), Advi(iterations=2000, draws=DRAWS))
_ENSEMBLE = _sized(Ensemble(members=100), Ensemble(members=20))
_DISTILLED = _sized(
    Distilling(DistillationSettings(), DRAWS),
    Distilling(DistillationSettings(iterations=1000), DRAWS),
)
_row = LeaderboardRow
METHODS: Mapping[str, LeaderboardRow] = MappingProxyType(
    {
        "nuts": _row("NUTS, NumPyro", "numpyro", _nuts),
        "nuts-stan": _row("NUTS, Stan", "stan", _nuts),
        "nuts-nutpie": _row("NUTS, nutpie", "nutpie", _nuts),
        "hmc": _row("HMC", "numpyro", _hmc),
        "mclmc": _row("MCLMC", "numpyro", _sized(Mclmc(), Mclmc(draws=500))),
        "meanfield": _row("mean-field ADVI", "numpyro", _ADVI),
        "fullrank": _row("full-rank ADVI", "numpyro", _ADVI),
        "symmetrised": _row(
            "symmetrised VI",
            "numpyro",
            _symmetrised,
            lambda t: any(blocks_of(t.symmetry, kind) for kind in (Exchangeable, Complement)),
        ),
        "pathfinder": _row("Pathfinder", "stan", _sized(Pathfinder())),
        "laplace": _row("Laplace", "numpyro", _sized(Laplace(draws=DRAWS))),
        "ensemble": _row(
            "deep ensemble", "numpyro", _ENSEMBLE, lambda target: isinstance(target, NetworkTarget)
        ),
        "distilled": _row(
            "NUTS distilled, one Gaussian", "analysis", _DISTILLED, _is_free_network, ("nuts",)
        ),
    }
)
"""By the words of the command line: the method's own, with the engine after a dash where it has several."""


def chosen(words: tuple[str, ...] | None) -> tuple[str, ...]:
    """Choose methods by their words, with those that they are made from; refuses other words.

    All by default, but nutpie only where it is there.
    """
    if words is None:
        return tuple(name for name in METHODS if name != "nuts-nutpie" or find_spec("nutpie"))
    for word in words:
        if word not in METHODS:
            raise StudyError(f"`--methods` names {word!r}; choose among {', '.join(METHODS)}.")
    wanted = {*words, *(name for word in words for name in METHODS[word].inputs)}
    return tuple(name for name in METHODS if name in wanted)


NAME = "leaderboard"


@dataclass(frozen=True)
class LeaderboardConfig:
    """The leaderboard's settings."""

    seed: int  # Of every method.
    references: tuple[str, ...]
    methods: tuple[str, ...]
    quick: bool = False  # Whether methods get less than their defaults.
    added: tuple[Added, ...] = ()

    def __post_init__(self) -> None:
        if not self.references:
            raise StudyError(
                "`--only` leaves no reference, for none is kept: make some by `onebasin truth make`."
            )
        if not cells(self):
            raise StudyError(
                f"`--methods` is {', '.join(self.methods)}, none of which is for {', '.join(self.references)}: choose "
                f"among {', '.join(METHODS)}."
            )


def configured(
    *,
    only: tuple[str, ...] | None = None,
    methods: tuple[str, ...] | None = None,
    quick: bool = False,
    seed: int = 0,
    added: tuple[Added, ...] = (),
) -> LeaderboardConfig:
    """Make the settings; all references and methods by default, and of added methods those alone where one is given."""
    there = tuple(n for n in references() if open_reference(n).info["problem"] in PROBLEMS)
    names = there if only is None else tuple(dict.fromkeys(choose("only", n, there) for n in only))
    words = () if added and methods is None else chosen(methods)
    return LeaderboardConfig(seed, names, words, quick, added)


def configure(options: Options) -> LeaderboardConfig:
    """Make the settings from what `onebasin study leaderboard` was given."""
    refused = "full engine chains warmup draws dtype splits datasets parametrisations"
    options.refuse(NAME, *refused.split())
    return configured(only=options.problems, quick=options.quick, seed=options.seed)


def problem_of(reference: str) -> Problem:
    """The problem that a reference is of."""
    return PROBLEMS[open_reference(reference).info["problem"]]


def cells(config: LeaderboardConfig) -> tuple[Cell, ...]:
    """List the cells: each reference's methods, then what is added."""
    found, alone = [], len(config.references) == 1
    for reference in config.references:
        problem = problem_of(reference)
        model = problem.target()
        for name in config.methods:
            method = METHODS[name]
            if method.fits(model):
                inputs = tuple(f"{reference}.{one}.{METHODS[one].engine}" for one in method.inputs)
                settings = method.settings(problem, config.quick)
                found.append(
                    Cell(reference, name, method.engine, settings, config.seed, inputs=inputs)
                )
        for added in config.added:
            own = settings_for(added, reference, alone=alone)
            found.append(Cell(reference, added.name, ENGINE, own, config.seed))
    return tuple(found)


def target(config: LeaderboardConfig, cell: Cell) -> Target:
    """The model that a cell's reference is of, conditioned on its data."""
    return problem_of(cell.problem).target()


def make(config: LeaderboardConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Make a cell's posterior; a method that cannot is a result, and no error of the leaderboard's."""
    target = context.target
    assert target is not None, "every cell has a target"
    if isinstance(cell.settings, Own):
        return posterior_of(cell.method, cell.settings, target, cell.seed, cell.problem)
    try:
        if isinstance(cell.settings, Symmetrised):
            return symmetrise(cell, context, cell.settings)
        if isinstance(cell.settings, Distilling):
            assert isinstance(target, NetworkTarget), "what predicts is distilled"
            return cell.settings.make(context.inputs[0], target, cell.seed)
        return sample(replace(cell, method=cell.method.partition("-")[0]), context)
    except (InferenceError, StanError) as error:
        raise CellFailed(str(error)) from error
