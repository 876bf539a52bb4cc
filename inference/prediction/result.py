"""Predictions at new data, and a table of their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.base.card import MOST, Card, FactList, Words, in_brief
from onebasin.base.errors import ArgumentError
from onebasin.base.showing import Shown
from onebasin.base.table import frame_table
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws, entry_names, lay_out_columns


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Shown):
    """Draws of a posterior at new data; made by `ob.predict`.

    Attributes
    ----------
    tree : DataTree
        The posterior with ArviZ's groups `predictions` and `predictions_constant_data`, for `ob.save` and ArviZ.
    """

    tree: xr.DataTree

    @property
    def predictions(self) -> xr.Dataset:
        """The group `predictions`, with every predicted variable as (chain, draw, ...)."""
        return self.tree[schema.PREDICTIONS].to_dataset()

    @property
    def predictions_constant_data(self) -> xr.Dataset:
        """The group `predictions_constant_data`, with the new data and old ones that were not replaced."""
        return self.tree[schema.PREDICTIONS_CONSTANT_DATA].to_dataset()

    def intervals(self, prob: float = 0.9) -> pd.DataFrame:
        """Summarise every predicted number.

        Parameters
        ----------
        prob : float
            Probability of the central interval, above 0 and below 1.

        Returns
        -------
        DataFrame
            A row a number, such as ``y[0]``; columns ``mean``, ``sd``, ``median`` and the two ends of the interval,
            such as ``5%`` and ``95%``, in the units of the data. NaN where a draw is not finite.

        Raises
        ------
        ValueError
            If `prob` is no such probability.
        """
        if not 0 < prob < 1:
            raise ArgumentError(f"`prob` is {prob!r}; give a probability above 0 and below 1.")
        draws = self._draws
        low, high = (1 - prob) / 2, (1 + prob) / 2
        columns = ["mean", "sd", f"{100 * low:.4g}%", "median", f"{100 * high:.4g}%"]
        rows = [np.empty((len(columns), 0))]
        for block in draws.blocks():
            flat = block.reshape(-1, block.shape[-1])
            spread = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.nan)
            rows.append(
                np.stack([flat.mean(axis=0), spread, *np.quantile(flat, [low, 0.5, high], axis=0)])
            )
        table = pd.DataFrame(np.concatenate(rows, axis=1).T, index=draws.names, columns=columns)
        return table.reindex([entry for v in self._arrays for entry in entry_names(v)])

    @property
    def _arrays(self) -> list[xr.DataArray]:
        held = self.predictions
        return [held[name].transpose(*schema.SAMPLE_DIMS, ...) for name in held]

    @property
    def _draws(self) -> Draws:
        return lay_out_columns(self._arrays)

    @property
    def _broken(self) -> int:
        """The number of draws at which some prediction is not finite."""
        axes = [tuple(range(2, v.ndim)) for v in self._arrays]
        bad = [~np.isfinite(v.values).all(axis=a) for v, a in zip(self._arrays, axes, strict=True)]
        return int(np.any(bad, axis=0).sum())

    def _card(self) -> Card:
        held = self.predictions
        names = list(map(str, held.data_vars))
        count = held.sizes["chain"] * held.sizes["draw"]
        table = self.intervals()
        more = f", the first {MOST} of {len(table)}" if len(table) > MOST else ""
        given = list(map(str, self.predictions_constant_data.data_vars))
        broken = self._broken
        said = (
            f"At {broken:,} of {count:,} draws a prediction is not finite, so that it has no mean or interval: the "
            "draws or the data do not fit the model."
        )
        return Card(
            f"Predictions of {in_brief(names)}",
            (
                Words(f"{count:,} draws of the posterior at new data; 90 % intervals."),
                *([Words(said, flag="warn")] if broken else []),
                FactList.of(("data", in_brief(given))),
                frame_table(table.head(MOST), f"Predictions{more}"),
            ),
        )
