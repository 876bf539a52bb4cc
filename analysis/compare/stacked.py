"""The result of a comparison of models: ArviZ's table, the weights, and what their mixture predicts better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.base.card import Card, Words, measured, number
from onebasin.base.checks import check_count, check_seed
from onebasin.base.errors import ArgumentError
from onebasin.base.showing import Shown
from onebasin.base.table import Table, frame_table
from onebasin.posteriors import schema
from onebasin.posteriors.view import View

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData

SHOWN = 5
"""Observations that a card lists."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Shown):
    """A comparison of models, or of the parts of one posterior; made by `ob.compare_models`.

    Attributes
    ----------
    table : DataFrame
        As of `arviz_stats.compare`, not rounded: a row a model, the best first, in nats.
    loo : mapping of str to ELPDData
        What the comparison rests on.
    pointwise : DataFrame
        The log predictive density of each observation that is left out, in nats: a column a model, `stack` by the
        weights, and `unweighted` with every model, or every draw of one posterior, counting the same.
    view : View or None
        The posterior, with its labels aligned, whose parts were compared.
    masks : mapping of str to array (chain, draw), or None
        Which draws are of each part.
    """

    table: pd.DataFrame
    loo: Mapping[str, ELPDData]
    pointwise: pd.DataFrame
    view: View | None = None
    masks: Mapping[str, np.ndarray] | None = None

    @property
    def weights(self) -> pd.Series:
        """The weight of each model, the best model first."""
        return self.table["weight"]

    def gain(self, over: str = "unweighted") -> tuple[float, float]:
        """Return by how much the stack predicts better.

        Parameters
        ----------
        over : str
            A model, or ``unweighted`` for their mixture without weights.

        Returns
        -------
        tuple of float
            The difference in elpd, summed over observations, and its standard error, in nats. The weights were chosen
            for these observations, so that it is optimistic.

        Raises
        ------
        ValueError
            If there is no such model.
        """
        if over not in self.pointwise:
            known = ", ".join(map(str, self.pointwise))
            raise ArgumentError(f"`over` is {over!r}; choose among {known}.")
        gap = (self.pointwise["stack"] - self.pointwise[over]).to_numpy()
        return float(gap.sum()), float(np.sqrt(len(gap)) * gap.std(ddof=1))

    def to_tree(self, *, draws: int = 1000, seed: int = 0) -> xr.DataTree:
        """Draw the stack's posterior: draws of the parts in proportion to their weights.

        Parameters
        ----------
        draws : int
            How many.
        seed : int
            Of the choice.

        Returns
        -------
        DataTree
            One chain of the groups that have all draws, for `ob.predict` and plots. The draws are independent choices
            among those that there are.

        Raises
        ------
        ValueError
            If separate models were compared, whose parameters are not the same.
        """
        check_count("draws", draws)
        check_seed(seed)
        if self.view is None or self.masks is None:
            raise ArgumentError("Separate models have no common posterior: predict with each one.")
        rng = np.random.default_rng(seed)
        weights = np.clip(self.weights.to_numpy(float), 0.0, None)
        counts = rng.multinomial(draws, weights / weights.sum())
        parts = [
            rng.choice(np.flatnonzero(self.masks[name]), count)
            for name, count in zip(self.table.index, counts, strict=True)
        ]
        chain, draw = np.divmod(np.concatenate(parts), self.view.num_draws)
        at = {
            d: xr.DataArray(p, dims="draw")
            for d, p in zip(schema.SAMPLE_DIMS, (chain, draw), strict=True)
        }
        groups: dict[str, xr.Dataset] = {}
        for name, node in self.view.tree.children.items():
            held = node.to_dataset()
            if name in (schema.POSTERIOR, *schema.DRAW_GROUPS) and schema.EVERY not in held.attrs:
                held = held.drop_vars(schema.SAMPLE_DIMS, errors="ignore").isel(at)
                groups[name] = held.expand_dims(chain=[0]).transpose(*schema.SAMPLE_DIMS, ...)
            elif name in schema.DATA_GROUPS:
                groups[name] = held
        tree = xr.DataTree.from_dict(groups)
        tree.attrs = dict(self.view.tree.attrs)
        return tree

    @property
    def sentences(self) -> list[str]:
        """The findings, a sentence each."""
        told = ", ".join(f"{name} {number(weight, 2)}" for name, weight in self.weights.items())
        best = str(self.table.index[0])
        gap = (self.pointwise["stack"] - self.pointwise["unweighted"]).to_numpy()
        bad = [name for name, word in self.table["diag_elpd"].items() if word]
        said = [
            f"Weights: {told}.",
            f"The stack predicts better than {best} alone by {measured(*self.gain(best))}.",
            f"It predicts better than the mixture without weights by {measured(*self.gain())}: {int((gap > 0).sum())} "
            f"of {len(gap)} observations are predicted better.",
        ]
        if bad:
            said.append(
                f"Pareto k is too large for some observations of {', '.join(map(str, bad))}: give "
                "`ob.loo(posterior, model=...)`, which matches moments."
            )
        return said

    @property
    def summary(self) -> Table:
        """The main columns of the table."""
        names = ("elpd", "se", "elpd_diff", "dse", "p", "weight")
        return frame_table(self.table, "Leave-one-out prediction, in nats", names)

    def _card(self) -> Card:
        gap = self.pointwise["stack"] - self.pointwise["unweighted"]
        most = gap.sort_values(ascending=False).head(SHOWN)
        return Card(
            f"{self.table.index[0]} predicts best",
            (
                *map(Words, self.sentences),
                self.summary,
                frame_table(most.to_frame("nats"), "What the stack predicts better"),
            ),
        )
