"""A search on the stacked view of `Counterparts`: separate parameters and positions as the components of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from onebasin.models.symmetry.counterparts import Counterparts

from .measuring import Probe, SearchedDensity, points_of
from .moves import Point
from .search import AscentEnd, Search
from .spaces import SAME


class StackedSearch(Search):
    """A search on the stacked view, with the points and the ascents of one on the parameters themselves.

    Counterparts are arrays there, the components along the first axis; the unconstrained space is the same.
    """

    def __init__(self, outer: Search, block: Counterparts) -> None:
        self.outer, self.block = outer, block
        own = outer.measured.density
        view = block.stack({name: np.zeros(shape) for name, shape in own.shapes.items()}, 0)
        covered = {n for n, marks in block.entries(own.shapes).items() if marks.all()}
        covered -= {*block.along, *block.complements}
        tied = {name: view[name].shape for name in block.members}
        # Of the tuples, then of all parameters that they do not cover.
        self.shapes = tied | {n: shape for n, shape in own.shapes.items() if n not in covered}
        stacked = SearchedDensity(
            self.shapes,
            own.dim,
            lambda vectors: self._stack(own.constrain(vectors), 1),
            self._log_density,
            own.gradient,
        )
        measured = outer.measured.of(stacked)
        super().__init__(measured, self._of(outer.probes), self._of(outer.given), outer.seed)

    def _stack(self, values: Point, lead: int) -> dict[str, np.ndarray]:
        """Values (*lead, ...) as `shapes` has them."""
        view = self.block.stack(values, lead)
        return {name: np.asarray(view[name]) for name in self.shapes}

    def _log_density(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Log density; points at which a parameter and its negative do not agree are outside the support."""
        own = self.outer.measured.density.shapes
        count = len(next(iter(values.values())))
        blank = {n: np.zeros((count, *shape)) for n, shape in own.items() if n not in values}
        apart = self.block.unstack({**blank, **values}, 1)
        found = self.outer.measured(points_of({n: apart[n] for n in own}))
        for name in self.block.reflected:
            agrees = np.isclose(values[name][:, 0], -values[name][:, 1], rtol=SAME, atol=SAME)
            found = np.where(agrees.reshape(count, -1).all(axis=1), found, -np.inf)
        return found

    def _of(self, probes: Sequence[Probe]) -> list[Probe]:
        return [replace(probe, point=self._stack(probe.point, 0)) for probe in probes]

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
