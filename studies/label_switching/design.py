"""The design: problems, engines, and how a posterior is made."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from onebasin.base.errors import StudyError
from onebasin.inference import Nuts
from onebasin.models import Target
from onebasin.posteriors import schema
from onebasin.truth.problems.label_switching import PROBLEMS, condition, simulate

from ..lab import Cell, Context, Options
from ..lab.making import sample

NAME = "label-switching"
DEFAULT = Nuts(draws=2000)
QUICK = Nuts(warmup=500, draws=500)


@dataclass(frozen=True)
class LabelSwitchingConfig:
    """The study's settings."""

    seed: int  # Of the data and of every sampler.
    engines: tuple[str, ...]
    problems: tuple[str, ...]
    """`engines`, `problems`: what is crossed; most problems are Stan programs, which NumPyro does not have."""
    nuts: Nuts = field(default_factory=Nuts)  # Settings of NUTS.

    def __post_init__(self) -> None:
        if self.nuts.chains < 2:
            raise StudyError(
                f"`--chains` is {self.nuts.chains}, and the study {NAME} compares chains: give 2 or "
                "more, 4 for a judgement by chains held out."
            )
        if not cells(self):
            raise StudyError(
                f"`--engine` is {self.engines[0]}, and {', '.join(self.problems)} is a Stan program: "
                "give --engine stan, or other problems."
            )


def configure(options: Options) -> LabelSwitchingConfig:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "datasets", "splits", "full", "parametrisations")
    return LabelSwitchingConfig(
        seed=options.seed,
        engines=options.engines("both"),
        problems=options.labels("problems", PROBLEMS, tuple(PROBLEMS)),
        nuts=options.sampler(QUICK if options.quick else DEFAULT),
    )


def cells(config: LabelSwitchingConfig) -> tuple[Cell, ...]:
    """List the cells: every problem by NUTS, in every engine that has it."""
    return tuple(
        Cell(problem=label, method="nuts", engine=engine, settings=config.nuts, seed=config.seed)
        for label in config.problems
        for engine in config.engines
        if engine in PROBLEMS[label].engines
    )


def target(config: LabelSwitchingConfig, cell: Cell) -> Target:
    """Condition the cell's model on its data."""
    return condition(cell.problem, config.seed)


def make(config: LabelSwitchingConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Try the declared symmetry on the log density, sample, and put the truth next to the draws."""
    from onebasin.inference import check_symmetry

    model = target(config, cell)
    found = check_symmetry(model, engine=cell.engine, seed=cell.seed, progress=context.say)
    tree = sample(cell, context)
    tree.attrs["symmetry_check"] = json.dumps(found.differences)
    if not model.is_network:
        tree.attrs[schema.SYMMETRY_EVIDENCE] = found.evidence.to_json()
    made = simulate(cell.problem, config.seed)
    tree["truth"] = xr.DataTree(_dataset(made.truth, model.dims))
    if "observed_data" not in tree.children:  # a network has its own
        arrays = {n: np.asarray(v) for n, v in made.data.items() if np.ndim(v)}
        tree["observed_data"] = xr.DataTree(_dataset(arrays, {}))
    return tree


def _dataset(values: Mapping[str, np.ndarray], dims: Mapping[str, tuple[str, ...]]) -> xr.Dataset:
    named = {
        name: dims.get(name, tuple(f"{name}_dim_{axis}" for axis in range(value.ndim)))
        for name, value in values.items()
    }
    return xr.Dataset({name: (named[name], value) for name, value in values.items()})
