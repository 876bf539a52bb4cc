"""Predictions of a network by point: the inputs at which chains agree on them with enough effective draws, and others.

A point is an input, with all outputs there. Its R-hat is the largest of them, its ESS the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from numpy.typing import ArrayLike

from onebasin.base.errors import ArgumentError
from onebasin.base.jsonable import json_safe
from onebasin.base.table import Column, Flag, Table, TableCell
from onebasin.posteriors.view import View

from ..predictive.convergence import summarise_predictions
from .verdict import Limits, Reason

FEW = 0.1
"""Largest share of points that cannot be used, beyond which none of them is."""
NAMED = 8
"""Points that a sentence names, the worst first."""
ROWS = 40
"""Points that a table shows at most, unless all are asked for."""


@dataclass(frozen=True, eq=False)
class JudgedPoints:
    """Points at which a network predicts, judged one by one.

    Its `table` has a row a point, by the number of its input: `rhat`, `ess_bulk`, and whether it is `usable`.
    """

    table: pd.DataFrame
    training: bool  # whether inputs are those that the network was fitted to
    limits: tuple[float, float]  # the largest R-hat and the smallest bulk ESS of a usable point

    @classmethod
    def of(
        cls,
        outputs: pd.DataFrame,
        rows: Int[np.ndarray, " obs"],
        limits: Limits,
        chains: int,
        *,
        training: bool,
    ) -> JudgedPoints | None:
        """Judge points by `rhat` and `ess_bulk` of their outputs, ``output[obs,out]``; None where there are none.

        Other rows are left out. `rows` are the numbers of the inputs, by `obs`.
        """
        place = outputs.index.str.extract(r"^(?:output|f|noise_sd)\[(\d+),", expand=False)
        known = outputs.loc[place.notna(), ["rhat", "ess_bulk"]]
        if known.empty:
            return None
        most, least = limits.deciding_rhat, limits.least_ess(chains)
        usable = (known["rhat"] <= most) & (known["ess_bulk"] >= least)  # not where one is NaN
        each = known.assign(usable=usable).groupby(place.dropna().astype(int).to_numpy())
        worst = each.agg({"rhat": "max", "ess_bulk": "min", "usable": "all"})
        worst.index = pd.Index(rows[worst.index], name="input")
        return cls(worst, training, (most, least))

    @property
    def bad(self) -> pd.DataFrame:
        """Points that cannot be used, the largest R-hat first."""
        return self.table[~self.table["usable"]].sort_values("rhat", ascending=False)

    @property
    def few(self) -> bool:
        """Tell whether some points cannot be used, and so few that the others can."""
        return 0 < len(self.bad) <= FEW * len(self.table)

    @property
    def cause(self) -> Reason:
        """Say at which points chains disagree, and what to do."""
        return Reason("points", "failed", "points apart", self._numbers)

    def reason(self, kind: str, name: str = "predictions by point") -> Reason:
        """Say at how many points predictions can be used, or at how many chains agree, and where not."""
        return Reason(name, "warned" if len(self.bad) else "passed", kind, self._numbers)

    @property
    def _numbers(self) -> dict[str, Any]:
        bad, count = self.bad, len(self.table)
        which = "training inputs" if self.training else "given inputs"
        numbers: dict[str, Any] = {"good": count - len(bad), "count": count, "which": which}
        if len(bad):
            first = ", ".join(map(str, bad.index[:NAMED]))
            first += f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
            numbers["bad"] = f"input{'s' if len(bad) > 1 else ''} {first}"
            numbers |= {"rhat": bad["rhat"].max(), "ess": bad["ess_bulk"].min()}
        return numbers | {"limits": self.limits[:1]}

    def as_table(self, answer: str | None, *, whole: bool = False) -> Table:
        """Tabulate points, those that cannot be used first; they are marked as bad where they forbid use."""
        flag: Flag = "bad" if answer == "unusable" and self.training else "warn"
        rest = self.table[self.table["usable"]]
        rows = pd.concat([self.bad, rest])[: None if whole else ROWS]
        most, least = self.limits
        columns = (
            "input",
            Column("R-hat", decimals=3, limits=(most,), unit="largest output"),
            Column("bulk ESS", decimals=0, limits=(least,), unit="smallest output"),
        )
        cells = tuple(
            (
                str(number),
                TableCell(row.rhat, "" if row.rhat <= most else flag),
                TableCell(row.ess_bulk, "" if row.ess_bulk >= least else flag),
            )
            for number, row in zip(rows.index, rows.itertuples(), strict=True)
        )
        which = "training inputs" if self.training else "given inputs"
        left = len(self.table) - len(rows)
        more = f"; {left} more can be used" if left and len(self.bad) <= ROWS else ""
        return Table(columns, cells, f"Predictions by point, at {len(self.table)} {which}{more}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON: counts, and a row a point."""
        return json_safe(
            {
                "inputs": "training" if self.training else "given",
                "count": len(self.table),
                "usable": int(self.table["usable"].sum()),
                "points": self.table.reset_index().to_dict("records"),
            }
        )


def points_at(view: View, x: ArrayLike, limits: Limits, chains: int) -> JudgedPoints | None:
    """Judge a network's predictions at inputs (obs, in), by its several Markov chains; 0 where it has none."""
    if view.network is not None and chains < 2:
        raise ArgumentError(
            f"`x` is given, but `{view.argument}` is not of several chains, which predictions are judged by; omit `x`."
        )
    outputs = summarise_predictions(view, x)
    return JudgedPoints.of(outputs, np.arange(np.shape(x)[0]), limits, chains, training=False)
