"""A problem: a model conditioned on fixed data, stated for both engines, with its symmetry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from onebasin.inference import Nuts
from onebasin.models import Target

if TYPE_CHECKING:
    from onebasin.inference.calibration.family import Family

Draws = Mapping[str, np.ndarray]
"""Arrays (chain, draw, *event) by variable."""
Invariant = Callable[[Draws], np.ndarray]
"""From draws to what no relabelling changes: (chain, draw), or (chain, draw, k)."""

RECIPE = Nuts(chains=10, warmup=10_000, draws=10_000)
"""The recipe of posteriordb: 10,000 iterations a chain after as many of warmup, of which every tenth is kept."""
ADAPTED = replace(RECIPE, warmup=1000)
"""The same after a tenth of the warmup, which these posteriors do not need: the criteria are of the draws."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model conditioned on fixed data."""

    name: str  # Its name on the command line, in files and in tables.
    title: str  # What it is, in a line.
    target: Callable[[], Target]
    """Makes the target: its data are fixed, its symmetry is declared, and it has a NumPyro definition and a Stan
    program whose log densities differ by a constant."""
    family: Callable[[], Family] | None = None
    """Makes the model before its data, prior and simulator, where that is stated."""
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    """Name to a function of the draws that no relabelling changes."""
    settings: Nuts = RECIPE
    """The settings that sample a reference of it; `draws` are those of a chain before thinning."""
    references: tuple[str, ...] = ()  # Where the model comes from.
    keywords: tuple[str, ...] = ()  # As posteriordb has them.
    quotient_of: Problem | None = None
    """The problem of which this one's posterior is one copy: its posterior modulo its symmetry, with the same density
    but for the number of copies. None for most."""
