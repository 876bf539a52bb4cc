"""Studies: what the command line was given, cells to run, measures of them, and the tables of the measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import filter as matching
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onebasin.base.checks import choose
from onebasin.base.errors import StudyError, check_seed
from onebasin.inference import Hmc, Nuts

from .. import registry
from .cells import Cell, Context, Outcomes
from .frames import Frames
from .tables import Summary

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from onebasin.models.target import Target


ENGINES = ("numpyro", "stan")
"""The engines of studies, in order; "stan" is CmdStan, the name that all records have. Why not the interpreter:
docs/developing/adding-a-study.md, "Engines"."""


@dataclass(frozen=True)
class Options:
    """The options that the command line was given; None where nothing was said."""

    quick: bool = False  # Whether to run small.
    full: bool = False  # Whether to run at the paper's size, where the default is smaller.
    engine: str | None = None  # An engine, or ``both``.
    seed: int = 0  # Seed of data and samplers.
    chains: int | None = None
    warmup: int | None = None
    draws: int | None = None
    splits: int | None = None
    dtype: str | None = None  # Precision of the NumPyro engine.
    datasets: int | None = None  # `chains`, `warmup`, `draws`, `splits`, `datasets`: counts.
    parametrisations: tuple[str, ...] | None = None
    """Labels of some of the study's parametrisations."""
    problems: tuple[str, ...] | None = None  # Labels of some of the study's problems.

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.quick and self.full:
            raise StudyError("`--full` came together with --quick: give one of them, or neither.")
        if self.engine is not None:
            choose("engine", self.engine, (*ENGINES, "both"))

    def engines(self, default: str) -> tuple[str, ...]:
        """Engines to run, in order."""
        word = self.engine or default
        return ENGINES if word == "both" else (word,)

    def sampler[S: (Nuts, Hmc)](self, default: S) -> S:
        """Replace chains, warmup, draws and precision of the default where they were given."""
        given = {name: getattr(self, name) for name in ("chains", "warmup", "draws", "dtype")}
        return replace(default, **{n: v for n, v in given.items() if v is not None})

    def labels(
        self,
        word: Literal["parametrisations", "problems"],
        known: Mapping[str, Any],
        default: tuple[str, ...],
    ) -> tuple[str, ...]:
        """Labels of the parametrisations or problems to run, in the order given; refuses those that are not known."""
        given: tuple[str, ...] | None = getattr(self, word)
        if given is None:
            return default
        return tuple(dict.fromkeys(choose(word, label, known) for label in given))

    def refuse(self, study: str, *names: str) -> None:
        """Refuse options that a study does not have, if one of them was given."""
        for name in names:
            given = getattr(self, name)
            if given is not None and given is not False:  # but 0 was given
                raise StudyError(f"`--{name}` does not apply to the study {study}: leave it out.")


@dataclass(frozen=True)
class Study:
    """A paper's experiment."""

    configure: Callable[[Options], Any]
    """From `Options` to the study's own settings, a frozen dataclass."""
    cells: Callable[[Any], tuple[Cell, ...]]
    """From those settings to the cells, in the order in which they should run; inputs come first."""
    target: Callable[[Any, Cell], Target | None]
    """From settings and cell to the model conditioned on data; None for a cell that `make` makes without one."""
    measures: Callable[[Any, Outcomes], Frames]
    """From settings and outcomes to frames by name; `failures` is added to them."""
    tables: tuple[Summary, ...]
    """The tables that are shown: what was found next to what the paper prints, where it does."""
    figures: Callable[[Any, Outcomes, Frames], Mapping[str, Figure]] = lambda *run: {}
    """From settings, outcomes and frames to the paper's figures, by the names of their files."""
    make: Callable[[Any, Cell, Context], xr.DataTree] | None = None
    """From settings, cell and a `Context` to the cell's posterior. Without it the target is sampled by the cell's
    method; `making.sample` does the same inside a `make`. What it makes may depend on the cell's target, engine,
    method, settings, seed and inputs alone: these are what a finished cell is recognised by."""


def find_study(name: str) -> Study:
    """Load a study by name; refuses one that there is not, and lists those that there are."""
    choose("NAME", name, registry.STUDIES)
    module = import_module(registry.STUDIES[name].module, __package__.rpartition(".")[0])
    study: Study = module.STUDY
    return study


def only(study: Study, patterns: Iterable[str], folder: Path | None = None) -> Study:
    """Restrict a study to the cells whose keys match a pattern, such as ``split03.*``, and to their inputs.

    Cells whose posteriors the folder has are taken too, so that a study can be run part by part. On a run, a pattern
    that matches no cell is a `StudyError`.
    """
    wanted = tuple(patterns)

    def cells(config: Any) -> tuple[Cell, ...]:
        every = study.cells(config)
        keys = [cell.key for cell in every]
        kept = {key for key in keys if folder is not None and (folder / f"{key}.nc").exists()}
        for pattern in wanted:
            if not (named := matching(keys, pattern)):
                raise StudyError(
                    f"`--only` is {pattern!r}, which is the key of none of the {len(keys)} cells: name some such as "
                    f"{', '.join(keys[:3])}; * stands for any text."
                )
            kept.update(named)
        for cell in reversed(every):  # inputs come before the cells that need them
            if cell.key in kept:
                kept.update(cell.inputs)
        return tuple(cell for cell in every if cell.key in kept)

    return replace(study, cells=cells)
