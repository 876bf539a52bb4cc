"""Cells: a cell is one posterior of a study, problem x method x engine, and split or data set where there are several.

It may be made from the posteriors of cells before it, its inputs. (A cell of a table is a `TableCell`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import OnebasinError

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.analysis.diagnostics.result import Diagnosis
    from onebasin.models.target import Target

METHOD_WORDS = {
    "nuts": "NUTS",
    "mclmc": "MCLMC",
    "meanfield": "mean-field ADVI",
    "fullrank": "full-rank ADVI",
}
ENGINE_WORDS = {"numpyro": "NumPyro", "stan": "Stan"}
_HELD = 2**28
"""Bytes of posteriors that stay in memory after they were read; those asked for longest ago go first."""


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
    _held: dict[Cell, xr.DataTree] = field(default_factory=dict, init=False, repr=False)

    def tree(self, cell: Cell) -> xr.DataTree:
        """Read the posterior of a cell that succeeded; a report asks for each about eight times."""
        from onebasin.inference.runs.posterior import open_posterior

        found = self._held.pop(cell, None)
        found = self._held[cell] = open_posterior(self.paths[cell]) if found is None else found
        while sum(tree.nbytes for tree in self._held.values()) > _HELD:
            del self._held[next(iter(self._held))]
        return found.copy(deep=False)

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
