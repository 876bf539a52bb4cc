"""Studies: a study has a design (cells and their settings), measures of the cells' posteriors, tables and figures.

A cell is one posterior, problem x method x engine, and split or data set where there are several. It may be made from
the posteriors of cells before it, its inputs. (A cell of a table is a `TableCell`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onebasin.base.checks import choose
from onebasin.base.errors import OnebasinError, StudyError, check_seed
from onebasin.inference import Hmc, Nuts

from .. import registry
from .tables import ENGINE_WORDS, METHOD_WORDS, Frames, Summary

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from onebasin.analysis.diagnostics.result import Diagnosis
    from onebasin.models.target import Target

ENGINES = ("numpyro", "stan")
"""The engines of studies, in order; "stan" is CmdStan, the name that all records have."""


class CellFailed(OnebasinError, RuntimeError):
    """A posterior that could not be made; raised by a study's `make`, it fails that cell alone."""


@dataclass(frozen=True)
class Cell:
    """One posterior of a study."""

    problem: str  # Label of what is inferred: a parametrisation, a model.
    method: str  # Method: one of `inference.methods.WORDS`, or whatever the study's `make` knows.
    engine: str  # Engine.
    settings: Any  # Settings of the method, frozen; JSON can say them.
    seed: int  # Seed of the sampler.
    split: int | None = None  # Number of the split, from 1; None where there is one set of data.
    inputs: tuple[str, ...] = ()  # Keys of earlier cells whose posteriors this one is made from.
    data: str = ""  # Name of the data set, where there are several; empty where there is one.
    number: int = 1  # Of the data set or the run, from 1.
    case: Any = None  # What a study varies in its data or model besides; hashable.

    @classmethod
    def of(cls, key: str, settings: Any, seed: int, inputs: tuple[str, ...] = ()) -> Cell:
        """Make the cell of a key without a split, ``problem.method.engine``."""
        problem, method, engine = key.split(".")
        return cls(problem, method, engine, settings, seed, inputs=inputs)

    @property
    def key(self) -> str:
        """Name of its file, without ending."""
        split = "" if self.split is None else f"split{self.split:02d}"
        return ".".join(filter(None, (self.data, split, self.problem, self.method, self.engine)))

    @property
    def label(self) -> str:
        """Name for a reader."""
        split = "" if self.split is None else f"split {self.split}"
        method = METHOD_WORDS.get(self.method, self.method)
        engine = ENGINE_WORDS.get(self.engine, self.engine)
        return ", ".join(filter(None, (self.data, split, self.problem, method, engine)))

    @property
    def factors(self) -> dict[str, Any]:
        """The columns that a row of this cell begins with: key, label, problem, method, engine, split, data."""
        names = ["key", "label", "problem", "method", "engine"]
        names += ["split"] if self.split is not None else []
        names += ["data"] if self.data else []
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The results of the cells."""

    paths: Mapping[Cell, Path]  # Posterior files of the cells that succeeded.
    failures: Mapping[Cell, str]  # Lines that say why the others did not.
    broken: tuple[Cell, ...] = ()
    """Those of the others that failed by an error, and are tried again by the next run."""
    _diagnoses: dict[Cell, Diagnosis] = field(default_factory=dict, init=False, repr=False)

    def tree(self, cell: Cell) -> xr.DataTree:
        """Read the posterior of a cell that succeeded."""
        from onebasin.inference.runs.posterior import open_posterior

        return open_posterior(self.paths[cell])

    def diagnosis(self, cell: Cell) -> Diagnosis:
        """Diagnose the posterior of a cell that succeeded, once."""
        from onebasin.analysis.diagnostics.measure import measure

        if cell not in self._diagnoses:
            self._diagnoses[cell] = measure(self.tree(cell))
        return self._diagnoses[cell]

    def find(self, problem: str, method: str) -> xr.DataTree | None:
        """Read the posterior of a problem by a method; None where there is none."""
        cells = (cell for cell in self.paths if (cell.problem, cell.method) == (problem, method))
        return next(map(self.tree, cells), None)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.paths)


@dataclass(frozen=True, eq=False)
class Context:
    """The arguments of `make` other than the cell."""

    target: Target | None  # What the study's `target` gave for the cell.
    checkpoint: Path | None
    """A folder of the cell's own, removed once its posterior is there: chains go there as they are drawn. None where
    a chain could not be told from another's."""
    progress: bool  # Whether to show bars.
    inputs: tuple[xr.DataTree, ...] = ()  # Posteriors of the cells that it is made from, in order.


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
    parametrisations: tuple[str, ...] | None = None  # Labels of some of the study's.
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
        chosen = default if given is None else [choose(word, label, known) for label in given]
        return tuple(dict.fromkeys(chosen))

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
    method; `run.sample` does the same inside a `make`. What it makes may depend on the cell's target, engine, method,
    settings, seed and inputs alone: these are what a finished cell is recognised by."""


def find_study(name: str) -> Study:
    """Load a study by name; refuses one that there is not, and lists those that there are."""
    choose("NAME", name, registry.STUDIES)
    module = import_module(registry.STUDIES[name].module, __package__.rpartition(".")[0])
    study: Study = module.STUDY
    return study
