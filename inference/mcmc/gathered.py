"""The draws of all chains of a run in one place: in memory, or where they are many and chains are kept, on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import Values
from onebasin.posteriors.room import Room

Arrays = Mapping[str, np.ndarray]


class Gathered:
    """The draws of all chains of a run.

    Parameters
    ----------
    num_chains, num_draws : int
        How many there will be; draws beyond are passed over.
    folder : Path or None
        In which many draws are laid down; None to have them in memory, however many there are.
    """

    def __init__(self, num_chains: int, num_draws: int, folder: Path | None = None) -> None:
        self._room = Room(num_chains, num_draws, folder)

    def put(self, number: int, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws of a chain, arrays (draw, ...), from the draw `first` on; see `places.Draws`."""
        self._room.put(number, first, {schema.POSTERIOR: draws, schema.SAMPLE_STATS: stats})

    @property
    def draws(self) -> Mapping[str, Values]:
        """Of every variable its draws (chain, draw, ...); on disk until they are asked for, where they are many."""
        return self._room.group(schema.POSTERIOR)

    @property
    def stats(self) -> Mapping[str, Values]:
        """Of every statistic its values (chain, draw), likewise."""
        return self._room.group(schema.SAMPLE_STATS)

    @property
    def filed(self) -> xr.DataTree | None:
        """What holds them on disk, if they are there; closing it removes them."""
        return self._room.filed
