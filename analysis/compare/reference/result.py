"""The result of a comparison with a reference: a verdict in words, and every quantity's differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from onebasin.base.card import Card, Words, number
from onebasin.base.jsonable import json_safe
from onebasin.base.showing import Shown
from onebasin.base.table import Flag, Table

from .judging import TESTED, Verdict

SHOWN = 10
"""Quantities that are shown, the worst first."""
FLAGS: dict[Verdict, Flag] = {
    "agrees": "good",
    "agrees in part": "good",
    "differs": "bad",
    "cannot be judged": "warn",
}


@dataclass(frozen=True, eq=False, repr=False)
class ReferenceComparison(Shown):
    """A run compared with a reference posterior.

    Attributes
    ----------
    name : str
        Of the run.
    reference : str
        Name of the reference that it is compared with.
    verdict : str
        ``agrees``, as far as Monte Carlo error can see; ``agrees in part``, in label-free quantities, while
        parameters cannot be judged; ``differs``; or ``cannot be judged``, for the run has not converged.
    sentences : tuple of str
        What the verdict means: what would have been seen, what differs by how much, or what to do.
    table : DataFrame
        A row a quantity, invariants first: `kind` (invariant or parameter); `mean_known`, `mean`, `sd_known`, `sd`;
        `d_mean`, `d_q5`, `d_q50`, `d_q95`, the run's less the reference's in the reference's sds, and `z_mean` and so
        on, the same in Monte Carlo errors of both sides; `error` and `error_tail`, these errors in sds; `sd_ratio` and
        `width_ratio` (of 90 % intervals), of the run to the reference; `rhat`, `ess_bulk` and `ess_tail` of the run;
        `passed`, whether these suffice.
    z_bound : float
        Beyond which absolute z is more than chance, for all tests together at 5 %.
    tests : int
        How many there are; 0 where the run cannot be judged.
    beyond : tuple of str
        Quantities with a test beyond the bound.
    visible, visible_tail : float
        The smallest error of a mean, and of a 5 or 95 % quantile, that would have been seen in any quantity with
        probability 0.95, in the reference's sds; NaN where the run cannot be judged.
    predictions : mapping of str to float
        Of a network: distances of predictions as in `compare`, and with ``_floor`` what two halves of the reference's
        draws differ by.
    notes : tuple of str
        How it was judged, in words.
    """

    name: str
    reference: str
    verdict: Verdict
    sentences: tuple[str, ...]
    table: pd.DataFrame
    z_bound: float
    tests: int
    beyond: tuple[str, ...]
    visible: float
    visible_tail: float
    predictions: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def heading(self) -> str:
        """The run and the verdict."""
        return f"{self.name}: {self.verdict}"

    def worst(self, number: int = SHOWN) -> pd.DataFrame:
        """Return the quantities that are furthest off.

        Parameters
        ----------
        number : int
            How many.

        Returns
        -------
        DataFrame
            Rows of `table`, those that did not pass first, by their largest absolute z; those not judged last.
        """
        z = self.table[[f"z_{name}" for name in TESTED]].abs().max(axis=1)
        order = pd.DataFrame({"failed": ~self.table["passed"], "z": -z.fillna(-1.0)})
        return self.table.loc[order.sort_values(["failed", "z"], kind="stable").index[:number]]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types for JSON, numbers that are not finite as None."""
        rows = [{"quantity": name, **row} for name, row in self.table.to_dict("index").items()]
        fields = ("name", "reference", "verdict", "sentences", "z_bound", "tests", "beyond")
        seen = ("visible", "visible_tail", "predictions", "notes")
        plain = {name: getattr(self, name) for name in (*fields, *seen)}
        return json_safe(plain | {"predictions": dict(self.predictions), "quantities": rows})

    def _card(self) -> Card:
        words = [Words(sentence) for sentence in self.sentences]
        notes = [Words(note, small=True) for note in self.notes]
        shown = self.worst()
        columns = {
            "mean off by": "d_mean",
            "|z|": "z_mean",
            "5 %": "d_q5",
            "95 %": "d_q95",
            "sd ratio": "sd_ratio",
        }
        rows = tuple(
            (
                f"`{name}`",
                *(number(abs(row[c]) if c == "z_mean" else row[c], 2) for c in columns.values()),
            )
            for name, row in shown.iterrows()
        )
        few = f"{len(shown)} of {len(self.table)}" if len(shown) < len(self.table) else "all"
        table = Table(("", *columns), rows, f"in the reference's sds, {few}")
        return Card(self.heading, (*words, table, *notes), FLAGS[self.verdict])
