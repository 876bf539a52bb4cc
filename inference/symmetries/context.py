"""A search under way: the log density, where it is compared, and what has been found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from .measuring import Measured, OutOfBudget, Probe
from .moves import Generator, lengths
from .points import Optimum, near_posterior, optima
from .result import FoundBlock
from .spaces import Space

Axes = list[tuple[str, int]]


@dataclass
class Search:
    """What the stages of a search share.

    Attributes
    ----------
    measured : Measured
        The log density.
    probes : list of Probe
        Random points.
    given : list of Probe
        Draws of the posterior; without any, rough ones are made where they matter.
    seed : int
        Of points.
    found : list of FoundBlock
        In the order in which they were found.
    open : list of str
        What was not searched.
    spaces : dict of int to Space
        The exact searches by how many parts there are.
    """

    measured: Measured
    probes: list[Probe]
    given: list[Probe]
    seed: int
    found: list[FoundBlock] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    spaces: dict[int, Space] = field(default_factory=dict)

    @property
    def order(self) -> tuple[str, ...]:
        """The variables as they are declared."""
        return tuple(self.measured.density.shapes)

    @cached_property
    def lengths(self) -> dict[int, Axes]:
        """The axes by how many parts lie along them."""
        return lengths(self.measured.density.shapes)

    @cached_property
    def ends(self) -> list[Optimum]:
        """Ends of ascents."""
        return optima(self.measured, self.seed)

    @cached_property
    def near(self) -> list[Probe]:
        """Points near the posterior: given draws, or rough ones."""
        return self.given or near_posterior(self.measured, self.seed, self.ends)

    @cached_property
    def shares(self) -> list[Generator]:
        """Complements of what lies in (0, 1) at every point."""
        values = {name: [p.point[name] for p in self.probes] for name in self.order}
        return [
            Generator(name, "complement")
            for name, each in values.items()
            if all(v.size and (v > 0).all() and (v < 1).all() for v in each)
        ]

    @cached_property
    def signed(self) -> tuple[str, ...]:
        """Variables that have values of both signs at some points: no others can change it."""
        return tuple(
            name
            for name in self.order
            if any((p.point[name] < 0).any() for p in self.probes)
            and any((p.point[name] > 0).any() for p in self.probes)
        )

    def stage(self, what: str, run: Callable[[], Iterator[FoundBlock]]) -> None:
        """Run a part of the search; where the budget ends in it, say so."""
        try:
            for block in run():
                self.found.append(block)
        except OutOfBudget:
            self.open.append(what)
