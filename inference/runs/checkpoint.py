"""Checkpoints of a run: arrays in a file, marked with the run that they are of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.checks import check_path
from onebasin.base.files.claims import read_arrays
from onebasin.base.files.seal import Seal, examine, sealing
from onebasin.base.notices import notice

from .kept import MARK, check_folder, state_file

SECONDS = 30.0
"""Least time between two writings of a state."""


def write(path: Path, fingerprint: str, arrays: Mapping[str, Any]) -> None:
    """Write arrays with a seal; the folder is made where it does not exist, the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sealing(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **{MARK: np.array(fingerprint)}, **arrays)


def read(path: Path, fingerprint: str) -> dict[str, np.ndarray] | None:
    """The arrays, or None where there is no whole file of this very run; a notice tells of a damaged one."""
    if not path.exists():
        return None
    if examine(path) is not Seal.SEALED:
        notice(f"{path} is damaged (its checksum is missing or wrong): what it kept is made again.")
        return None
    arrays = read_arrays(path)
    return None if str(arrays.pop(MARK)) != fingerprint else arrays


@dataclass(frozen=True)
class Kept:
    """A state to go on from, a pytree of arrays, with the losses (or whatever is traced) until then."""

    state: Any
    losses: list[np.ndarray]


class Keeper:
    """The place where training is kept every half minute: in a folder, made where it does not exist, or nowhere.

    The fingerprint says whether a file found there is of this very run.
    """

    def __init__(self, folder: Path | None = None, fingerprint: str = "") -> None:
        if folder is not None:
            check_folder(folder)
        self.path = None if folder is None else state_file(folder)
        self.fingerprint, self.seconds = fingerprint, SECONDS
        self._written = time.monotonic()

    def load(self, like: Kept) -> Kept:
        """Return the kept state, or `like`, the start, where there is none of this run."""
        arrays = None if self.path is None else read(self.path, self.fingerprint)
        if arrays is None:
            return like
        import jax  # here, as below: chains of Stan are kept without it
        import jax.numpy as jnp

        leaves, tree = jax.tree.flatten(like.state)
        state = [jnp.asarray(arrays[f"state/{i}"], leaf.dtype) for i, leaf in enumerate(leaves)]
        return Kept(jax.tree.unflatten(tree, state), list(arrays["losses"]))

    def save(self, make: Callable[[], Kept]) -> None:
        """Called after every epoch; writes what `make` gives, if the last time is long enough ago."""
        if self.path is None or time.monotonic() - self._written < self.seconds:
            return
        import jax

        kept = make()
        leaves = {f"state/{i}": np.asarray(v) for i, v in enumerate(jax.tree.leaves(kept.state))}
        write(self.path, self.fingerprint, {"losses": np.stack(kept.losses), **leaves})
        self._written = time.monotonic()


def keeper_in(folder: str | Path | None, fingerprint: Callable[[], str | None]) -> Keeper:
    """Return the keeper of a folder, one that keeps nothing where there is no folder or the run has no fingerprint."""
    if folder is None:
        return Keeper()
    place, mark = check_path("checkpoint", folder), fingerprint()
    return Keeper() if mark is None else Keeper(place, mark)
