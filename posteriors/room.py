"""Room for what there is of every draw, filled as it comes: in memory, or where it is much, on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np
import xarray as xr

from onebasin.base.errors import WriteError
from onebasin.base.files.claims import ClaimError

from .pointwise import Values
from .scratch import Scratch

LARGE = 2**25
"""Bytes from which on draws go to disk."""
_TOGETHER = 2**20
"""Bytes of one chain's draws that lie together there."""

Arrays = Mapping[str, np.ndarray]


class Room:
    """Groups of variables (chain, draw, ...); no draw is held twice for long.

    Parameters
    ----------
    num_chains, num_draws : int
        How many there will be; draws beyond are passed over.
    folder : Path or None
        In which many draws are laid down; None to have them in memory, however many there are.
    """

    def __init__(self, num_chains: int, num_draws: int, folder: Path | None = None) -> None:
        self.size = (num_chains, num_draws)
        self._folder = folder
        self._held: dict[str, dict[str, np.ndarray]] = {}
        self._scratch: Scratch | None = None
        self._lock = threading.Lock()

    def put(self, number: int, first: int, groups: Mapping[str, Arrays]) -> None:
        """Take draws of a chain, arrays (draw, ...), from the draw `first` on; the first ones say what there will be.

        Raises
        ------
        WriteError
            If the disk has no room for them.
        """
        with self._lock:
            if not self._held and self._scratch is None:
                self._make(groups)
            left = max(0, self.size[1] - first)
            for group, arrays in groups.items():
                for name, values in arrays.items():
                    self._put(group, name, number, first, values[:left])

    def _put(self, group: str, name: str, number: int, first: int, values: np.ndarray) -> None:
        if self._scratch is not None:
            self._scratch.put(group, name, number, first, values)
        else:
            self._held[group][name][number, first : first + len(values)] = values

    def _make(self, groups: Mapping[str, Arrays]) -> None:
        kinds = {
            group: {name: (values.shape[1:], values.dtype) for name, values in arrays.items()}
            for group, arrays in groups.items()
        }
        sizes = [prod(s) * dtype.itemsize for held in kinds.values() for s, dtype in held.values()]
        if self._folder is not None and prod(self.size) * sum(sizes) > LARGE:
            rows = max(1, _TOGETHER // sum(sizes))
            with self._writing(self._folder):
                self._scratch = Scratch(*self.size, kinds, rows=rows, parent=self._folder)
            return
        self._held = {
            group: {name: np.empty((*self.size, *s), dtype) for name, (s, dtype) in held.items()}
            for group, held in kinds.items()
        }

    @cached_property
    def filed(self) -> xr.DataTree | None:
        """What holds them on disk, if they are there; nothing can be put afterwards, and closing it removes them."""
        if self._scratch is None or self._folder is None:
            return None
        with self._writing(self._folder):
            return self._scratch.tree({}, lazy=True)

    def group(self, name: str) -> Mapping[str, Values]:
        """The variables of a group, after the last draw has been put; on disk until they are asked for."""
        if self.filed is None:
            return self._held.get(name, {})
        return {str(n): values for n, values in self.filed[name].data_vars.items()}

    @contextmanager
    def _writing(self, folder: Path) -> Iterator[None]:
        try:
            yield
        except (ClaimError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else f"it {error}"
            raise WriteError(
                folder,
                f"{folder} has no room for the draws of all chains beside those that are kept ({why}); make room "
                "there and run the same again.",
            ) from error
