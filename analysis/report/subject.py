"""One posterior as a page sees it: its name, its view, its diagnosis, and the draws that its numbers rest on.

Convention: where the answer is "usable after alignment", parameters that the symmetry moves are shown aligned, and all
others as they came; else everything is shown as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import View, as_view

from ..diagnostics.result import Diagnosis
from ..diagnostics.verdict import Verdict
from ..page.page import Note

_LARGE = 1e150
"""Size of a number whose square is not finite, or nearly so."""
Quantity = Float[np.ndarray, "chain draw"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A posterior that a page is about, and what the page calls it."""

    name: str
    view: View
    diagnosis: Diagnosis  # With the answer.

    @property
    def verdict(self) -> Verdict:
        """The answer to whether it may be used."""
        assert self.diagnosis.judgement is not None
        return self.diagnosis.judgement

    @cached_property
    def moved(self) -> frozenset[str]:
        """Parameters that the symmetry moves."""
        aligned = self.diagnosis.aligned
        return frozenset(map(str, aligned.aligned.parameters.index) if aligned else ())

    @cached_property
    def raw_draws(self) -> Draws:
        """All parameters as they came; the diagnosis has laid them out already where it looked at all variables."""
        asked = self.diagnosis.variables
        whole = len(asked) >= len(self.view.variables)
        return self.view.draws(None if whole else asked, finite=False)

    @cached_property
    def aligned_draws(self) -> Draws | None:
        """The parameters that the symmetry moves, aligned."""
        aligned = self.diagnosis.aligned
        if aligned is None:
            return None
        view = as_view(aligned.alignment.posterior)
        return view.draws(aligned.aligned.variables, finite=False)

    def several(self, names: Iterable[str]) -> dict[str, Quantity]:
        """Draws of some parameters, as they are shown; without those that never vary or have no finite squares."""
        aligned = self.aligned_draws if self.diagnosis.is_shown_aligned else None
        values = {
            name: (aligned if aligned and name in self.moved else self.raw_draws).of(name)
            for name in names
        }
        return {n: v for n, v in values.items() if np.abs(v).max() < _LARGE and np.ptp(v) > 0}

    @cached_property
    def worst(self) -> tuple[str, ...]:
        """Parameters that decide, largest R-hat first and then smallest bulk ESS; others only where there are none."""
        own = self.diagnosis.numbers.decisive
        table = own if len(own) else self.diagnosis.shown
        varying = table[np.isfinite(table["sd"]) & ~table.index.isin(self.diagnosis.constants)]
        ranked = varying.sort_values(
            ["rhat", "ess_bulk"], ascending=[False, True], na_position="last"
        )
        return tuple(map(str, ranked.index))

    def stat(self, name: str) -> Quantity | None:
        """A statistic of the draws that is finite throughout; None where there is none."""
        values = self.view.stat(name)
        return values if values is not None and np.isfinite(values).all() else None

    @property
    def diverging(self) -> np.ndarray | None:
        """Which draws diverged; None where that was not recorded."""
        values = self.view.stat(schema.DIVERGING)
        return None if values is None else values > 0


def listed(names: Sequence[str], *, most: int = 6) -> str:
    """List names in code type, the first few where there are many."""
    said = ", ".join(f"`{name}`" for name in names[:most])
    rest = len(names) - most
    return f"{said} and {format_number(rest)} more" if rest > 0 else said


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """Keep every k-th draw of each chain, k as small as leaves at most so many."""
    return values[:, :: max(1, -(-values.shape[1] // most))]


def findings(subject: Subject) -> tuple[Note, ...]:
    """Show what checks found and neither the answer nor its rows tell."""
    return tuple(
        Note(sentence, reason.flag)
        for reason in subject.verdict.own_remarks
        if reason.outcome in ("warned", "failed")
        for sentence in reason.sentences
    )
