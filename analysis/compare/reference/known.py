"""Known facts about a posterior: moments and quantiles with their errors, and the labelling that they are in.

The labelling of a posterior with interchangeable parts is canonical: centres and scales that are fixed once, with which
every draw is matched, the known ones as those of any other run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws, entry_names
from onebasin.posteriors.view import View, as_view

from ...alignment import align
from ...alignment.rule import AlignmentTarget
from ...diagnostics.invariants import invariants
from ...discovery.resolve import resolve
from ...summaries.deciding import deciding
from ...summaries.quantiles import describe

_QUANTILES = ("q5", "q50", "q95")
NEEDED = ("mean", "sd", *_QUANTILES, *(f"mcse_{q}" for q in _QUANTILES), "mcse_mean")
"""Columns of a table that a run is compared with."""
RESTARTS = 4
"""Starts of the matching, which blocks that share variables need."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Known:
    """Known facts about a posterior."""

    name: str  # What sentences call it.
    draws: View  # Some of its draws, in the canonical labelling; predictions are made of them.
    symmetry: Symmetry  # Blocks that make equal modes.
    labelling: AlignmentTarget | None
    """Draws are matched with it to be in the canonical labelling; None without a symmetry."""
    parameters: pd.DataFrame
    """A row an entry in the canonical labelling, columns of `summaries.quantiles.DESCRIBED`, at least `NEEDED`."""
    invariants: pd.DataFrame
    """The same of quantities that no element of the symmetry changes. Either table may be empty."""
    measure: Callable[[View], Draws]  # From a run's view to the draws of these quantities.
    caveat: str = ""  # What is not known, in a sentence; empty where nothing is left out.

    def __post_init__(self) -> None:
        """Refuse tables that lack a column."""
        for table in (self.parameters, self.invariants):
            absent = [column for column in NEEDED if column not in table]
            if absent:
                raise ArgumentError(
                    f"`reference` {self.name} lacks {', '.join(absent)}: give what `open_reference` returned."
                )

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of its parameters, in the order of its draws."""
        rows = set(self.parameters.index)
        names = self.draws.variables
        return tuple(n for n in names if not rows.isdisjoint(entry_names(self.draws.posterior[n])))

    def align(self, run: View, progress: Progress | None) -> tuple[View, str]:
        """Bring every draw of a run into the canonical labelling; return it, and the rule in words."""
        if self.labelling is None:
            return run, ""
        alignment = align(
            run, self.symmetry, reference=self.labelling, restarts=RESTARTS, progress=progress
        )
        blocks = "; ".join(block.describe() for block in self.symmetry)
        rule = (
            f"Modulo {blocks}: every draw is matched with the canonical labelling of `{self.name}`."
        )
        return as_view(alignment.posterior, run.argument), rule


def known_of(
    posterior: Any,
    *,
    name: str = "the reference",
    symmetry: Symmetry | str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Known:
    """Find out what is known of a posterior from draws that are taken for it, such as a long run of NUTS.

    Modulo the symmetry that is given, by default what the posterior declares. There have to be at least 4 finite draws
    a chain.
    """
    view = as_view(posterior, "reference")
    blocks = resolve(view, symmetry).equal_modes
    alignment = align(view, blocks, progress=progress) if blocks else None
    if alignment is not None:
        view = as_view(alignment.posterior, view.argument)

    def measure(run: View) -> Draws:
        return without_lp(invariants(run, blocks)) if blocks else nothing(run)

    free = view.is_independent
    names, _ = deciding(view)
    return Known(
        name=name,
        draws=view,
        symmetry=blocks,
        labelling=None if alignment is None else alignment.target,
        parameters=describe(view.draws(names), independent=free),
        invariants=describe(measure(view), independent=free),
        measure=measure,
    )


def without_lp(draws: Draws) -> Draws:
    """Leave out the log density, which engines give up to constants of their own."""
    kept = [place for place, name in enumerate(draws.names) if name != schema.LP]
    return Draws(tuple(draws.names[place] for place in kept), draws.values[..., kept])


def nothing(run: View) -> Draws:
    """No quantities, where there is no symmetry: then every parameter is one that nothing changes."""
    return Draws((), np.empty((run.num_chains, run.num_draws, 0)))
