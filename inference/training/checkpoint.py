"""The state of training in a file, so that a run that was stopped goes on to the same networks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.models.files import replacing

from .train import Keeper, Kept

SECONDS = 30.0
"""Least time between two writings."""


class FileKeeper(Keeper):
    """Keeps the state of one run in a folder, every half minute.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.
    fingerprint : str
        Says whether a file found there is of this very run.
    seconds : float
        Least time between two writings.
    """

    def __init__(self, folder: Path, fingerprint: str, seconds: float = SECONDS) -> None:
        self.path = folder / "training.npz"
        self.fingerprint, self.seconds = fingerprint, seconds
        self._written = time.monotonic()

    def load(self, like: Kept) -> Kept:
        """The file's state, or `like` where there is none of this run."""
        if not self.path.exists():
            return like
        with np.load(self.path, allow_pickle=False) as file:
            if str(file["fingerprint"]) != self.fingerprint:
                return like
            leaves, tree = jax.tree.flatten(like.state)
            state = [jnp.asarray(file[f"state/{i}"], leaf.dtype) for i, leaf in enumerate(leaves)]
            losses = list(file["losses"])
        return Kept(jax.tree.unflatten(tree, state), losses)

    def save(self, make: Callable[[], Kept]) -> None:
        """Write, if the last time is long enough ago."""
        if time.monotonic() - self._written < self.seconds:
            return
        kept = make()
        leaves = {f"state/{i}": np.asarray(v) for i, v in enumerate(jax.tree.leaves(kept.state))}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as part, part.open("wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                fingerprint=np.array(self.fingerprint),
                losses=np.stack(kept.losses),
                **leaves,
            )
        self._written = time.monotonic()
