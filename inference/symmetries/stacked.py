"""A search on the stacked view of `Counterparts`: separate parameters and positions as the components of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from onebasin.models.symmetry.counterparts import Counterparts

from .measuring import BudgetedDensity, Probe, point_of
from .moves import Point
from .search import AscentEnd, Search
from .spaces import SAME


@dataclass(frozen=True)
class Stacked:
    """A log density whose counterparts are arrays, the components along the first axis.

    Attributes
    ----------
    measured : BudgetedDensity
        Of the parameters as they are declared.
    block : Counterparts
        What is stacked.
    """

    measured: BudgetedDensity
    block: Counterparts

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the tuples, then of all parameters that they do not cover."""
        own = self.measured.density.shapes
        view = self.block.stack({name: np.zeros(shape) for name, shape in own.items()}, 0)
        covered = {n for n, marks in self.block.entries(own).items() if marks.all()}
        covered -= {*self.block.along, *self.block.complements}
        tied = {name: view[name].shape for name in self.block.members}
        return tied | {name: shape for name, shape in own.items() if name not in covered}

    @property
    def dim(self) -> int:
        """Coordinates of the unconstrained space."""
        return self.measured.density.dim

    def constrain(self, vectors: Float[np.ndarray, "point dim"]) -> dict[str, np.ndarray]:
        """See `SearchedDensity`."""
        return self.stack(self.measured.density.constrain(vectors), 1)

    def log_density(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " point"]:
        """See `SearchedDensity`; where a parameter and its negative do not agree is outside the support."""
        own = self.measured.density.shapes
        count = len(next(iter(values.values())))
        blank = {n: np.zeros((count, *shape)) for n, shape in own.items() if n not in values}
        apart = self.block.unstack({**blank, **values}, 1)
        found = self.measured([point_of({n: apart[n] for n in own}, row) for row in range(count)])
        for name in self.block.reflected:
            agrees = np.isclose(values[name][:, 0], -values[name][:, 1], rtol=SAME, atol=SAME)
            found = np.where(agrees.reshape(count, -1).all(axis=1), found, -np.inf)
        return found

    def gradient(
        self, vector: Float[np.ndarray, " dim"]
    ) -> tuple[float, Float[np.ndarray, " dim"]] | None:
        """See `SearchedDensity`; the unconstrained space is the same."""
        return self.measured.density.gradient(vector)

    def stack(self, values: Point, lead: int) -> dict[str, np.ndarray]:
        """Values (*lead, ...) as `shapes` has them."""
        view = self.block.stack(values, lead)
        return {name: np.asarray(view[name]) for name in self.shapes}


class StackedSearch(Search):
    """A search on the stacked view, with the points and the ascents of one on the parameters themselves."""

    def __init__(self, outer: Search, block: Counterparts) -> None:
        self.outer, self.block = outer, block
        self.stacked = Stacked(outer.measured, block)
        measured = outer.measured.of(self.stacked)
        super().__init__(measured, self._of(outer.probes), self._of(outer.given), outer.seed)

    def _of(self, probes: Sequence[Probe]) -> list[Probe]:
        return [replace(probe, point=self.stacked.stack(probe.point, 0)) for probe in probes]

    def _ends(self, ends: Sequence[AscentEnd]) -> list[AscentEnd]:
        probes = self._of([end.probe for end in ends])
        return [replace(end, probe=probe) for end, probe in zip(ends, probes, strict=True)]

    @cached_property
    def ends(self) -> list[AscentEnd]:
        """Ends of ascents."""
        return self._ends(self.outer.ends)

    @cached_property
    def more_ends(self) -> list[AscentEnd]:
        """Ends of ascents from farther away, of those that arrived."""
        return self._ends(self.outer.more_ends)

    @cached_property
    def near(self) -> list[Probe]:
        """Points near the posterior."""
        return self._of(self.outer.near)
