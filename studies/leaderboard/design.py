"""The design and the cells: references, methods, what is added, and their making."""

from __future__ import annotations

from dataclasses import dataclass, replace

import xarray as xr

from onebasin.base.checks import choose
from onebasin.base.errors import InferenceError, StudyError
from onebasin.inference import Symmetrised
from onebasin.models import NetworkTarget, Target
from onebasin.stan import StanError
from onebasin.truth import open_reference, references
from onebasin.truth.problems import PROBLEMS, Problem

from ..lab import Cell, CellFailed, Context, Options, Outcomes
from ..lab.making import sample, symmetrise
from ..lab.posteriors import Distilling
from .added import ENGINE, Added, Own, posterior_of, settings_for
from .methods import METHODS, chosen

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
        """Refuse what leaves nothing to run."""
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


def make(
    config: LeaderboardConfig, cell: Cell, outcomes: Outcomes, context: Context
) -> xr.DataTree:
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
            return cell.settings.make(outcomes.by_key(cell.inputs[0]), target, cell.seed)
        return sample(replace(cell, method=METHODS[cell.method].word), context)
    except (InferenceError, StanError) as error:
        raise CellFailed(str(error)) from error
