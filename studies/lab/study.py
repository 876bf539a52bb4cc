"""What a study is: cells to run, and what is concluded from their posteriors.

A cell is one posterior: problem x method x engine, and the split where a study has several. It may be
made from the posteriors of cells before it, its inputs. A study says which cells there are, what each is
conditioned on, how one is made where sampling a target is not all, and what follows from all of them;
`lab.driver` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.analysis.report import Report, Table
from onebasin.inference import NutsSettings
from onebasin.inference.engine import ENGINES
from onebasin.models.choices import choose
from onebasin.models.errors import OnebasinError

from ..errors import StudyError, check_seed
from .claims import Statement

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target

METHOD_WORDS = {"nuts": "NUTS", "meanfield": "mean-field ADVI", "fullrank": "full-rank ADVI"}
ENGINE_WORDS = {"numpyro": "NumPyro", "stan": "Stan"}


class CellFailed(OnebasinError, RuntimeError):
    """A posterior that could not be made; raised by a study's `make`, it fails that cell alone."""


@dataclass(frozen=True)
class Options:
    """What the command line was given; None where nothing was said.

    Attributes
    ----------
    quick : bool
        Whether to run small.
    full : bool
        Whether to run at the paper's size, where the default is smaller.
    engine : str or None
        An engine, or ``both``.
    seed : int
        Seed of data and samplers.
    chains, warmup, draws, splits : int or None
        Counts.
    parametrisations : tuple of str or None
        Labels of some of the study's parametrisations, or of whatever problems it has instead.
    """

    quick: bool = False
    full: bool = False
    engine: str | None = None
    seed: int = 0
    chains: int | None = None
    warmup: int | None = None
    draws: int | None = None
    splits: int | None = None
    parametrisations: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what no study takes."""
        check_seed(self.seed)
        if self.quick and self.full:
            raise StudyError("`--full` came together with --quick: give one of them, or neither.")
        if self.engine is not None:
            choose("engine", self.engine, (*ENGINES, "both"))

    def engines(self, default: str) -> tuple[str, ...]:
        """Engines to run, in order."""
        word = self.engine or default
        return ENGINES if word == "both" else (word,)

    def nuts(self, default: NutsSettings) -> NutsSettings:
        """Replace chains, warmup and draws of the default where they were given."""
        given = {name: getattr(self, name) for name in ("chains", "warmup", "draws")}
        return replace(default, **{n: v for n, v in given.items() if v is not None})

    def choose_parametrisations(
        self,
        known: Mapping[str, Any],
        default: tuple[str, ...],
        *,
        word: str = "parametrisations",
    ) -> tuple[str, ...]:
        """Labels of the parametrisations to run, in the order given; `word` is what they are called.

        Raises
        ------
        ValueError
            If one is not the study's; the message lists those that are.
        """
        if self.parametrisations is None:
            return default
        return tuple(dict.fromkeys(choose(word, label, known) for label in self.parametrisations))

    def refuse(self, study: str, *names: str) -> None:
        """Refuse options that a study does not have.

        Raises
        ------
        StudyError
            If one of them was given.
        """
        for name in names:
            given = getattr(self, name)
            if given is not None and given is not False:  # but 0 was given
                raise StudyError(f"`--{name}` does not apply to the study {study}: leave it out.")


@dataclass(frozen=True)
class Cell:
    """One posterior of a study.

    Attributes
    ----------
    problem : str
        Label of what is inferred: a parametrisation, a model.
    method : str
        Method: one of `methods.METHODS`, or whatever the study's `make` knows.
    engine : str
        Engine.
    settings : dataclass
        Settings of the method, frozen; JSON can say them.
    seed : int
        Seed of the sampler.
    split : int or None
        Number of the split, from 1; None where there is one set of data.
    inputs : tuple of str
        Keys of earlier cells whose posteriors this one is made from.
    """

    problem: str
    method: str
    engine: str
    settings: Any
    seed: int
    split: int | None = None
    inputs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name of its file, without ending."""
        split = () if self.split is None else (f"split{self.split:02d}",)
        return ".".join((*split, self.problem, self.method, self.engine))

    @property
    def label(self) -> str:
        """Name for a reader."""
        split = "" if self.split is None else f"split {self.split}, "
        method = METHOD_WORDS.get(self.method, self.method)
        engine = ENGINE_WORDS.get(self.engine, self.engine)
        return f"{split}{self.problem}, {method}, {engine}"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What became of the cells.

    Attributes
    ----------
    paths : mapping
        Posterior files of the cells that succeeded.
    failures : mapping
        Lines that say why the others did not.
    """

    paths: Mapping[Cell, Path]
    failures: Mapping[Cell, str]

    def tree(self, cell: Cell) -> xr.DataTree:
        """Read the posterior of a cell that succeeded."""
        from onebasin.inference.posterior import open_posterior

        return open_posterior(self.paths[cell])

    def by_key(self, key: str) -> xr.DataTree:
        """Read the posterior of the cell with this key.

        Raises
        ------
        StudyError
            If no cell of this key has succeeded (yet).
        """
        for cell in self.paths:
            if cell.key == key:
                return self.tree(cell)
        have = ", ".join(cell.key for cell in self.paths) or "none"
        raise StudyError(f"`key` is {key!r}, of which there is no posterior; there are: {have}.")

    def __iter__(self) -> Iterator[Cell]:
        """Go through the cells that succeeded."""
        return iter(self.paths)


@dataclass(frozen=True, eq=False)
class Context:
    """What `make` is told beside the cell.

    Attributes
    ----------
    target : Target or None
        What the study's `target` gave for the cell.
    checkpoint : Path
        A folder of the cell's own, removed once its posterior is kept: finished chains go there.
    progress : bool
        Whether to show bars.
    say : callable
        Called with a line of text before something that takes long.
    """

    target: Target | None
    checkpoint: Path
    progress: bool
    say: Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Findings:
    """What a study concludes.

    Attributes
    ----------
    headline : tuple of str
        The result in a few sentences.
    statements : tuple of Statement
        The paper's statements.
    shown : tuple of Table
        Tables for the terminal.
    tables : tuple of Table
        All tables, for the record.
    report : Report
        The page.
    data : mapping
        All numbers, for JSON.
    """

    headline: tuple[str, ...]
    statements: tuple[Statement, ...]
    shown: tuple[Table, ...]
    tables: tuple[Table, ...]
    report: Report
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what goes to JSON: plain types."""
        return {
            "headline": list(self.headline),
            "statements": [asdict(s) | {"outcome": s.outcome} for s in self.statements],
            **self.data,
        }


@dataclass(frozen=True)
class Study:
    """A paper's experiment.

    Attributes
    ----------
    configure : callable
        From `Options` to the study's own settings, a frozen dataclass.
    cells : callable
        From those settings to the cells, in the order in which they should run; inputs come first.
    target : callable
        From settings and cell to the model conditioned on data; None for a cell that `make` makes
        without one.
    conclude : callable
        From settings and outcomes to findings.
    make : callable, optional
        From settings, cell, the outcomes so far and a `Context` to the cell's posterior. Without it
        the target is sampled by the cell's method; `driver.sample` does the same inside a `make`.
        What it makes may depend on the cell's target, engine, method, settings, seed and inputs alone:
        these are what a finished cell is recognised by.
    """

    configure: Callable[[Options], Any]
    cells: Callable[[Any], tuple[Cell, ...]]
    target: Callable[[Any, Cell], Target | None]
    conclude: Callable[[Any, Outcomes], Findings]
    make: Callable[[Any, Cell, Outcomes, Context], xr.DataTree] | None = None


def failure_table(outcomes: Outcomes) -> Table:
    """Tabulate the cells that failed, with the reason."""
    rows = tuple((cell.label, reason) for cell, reason in outcomes.failures.items())
    return Table(("cell", "why it failed"), rows, "Cells without a posterior")
