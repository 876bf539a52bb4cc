"""One way to open a program in both engines."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ENGINES = ("cmdstan", "stanli")
SEED = 0
"""Seed of random numbers in transformed data."""


def opened(
    program: Path,
    data: Mapping[str, Any],
    engine: str,
    progress: Callable[[str], None] | None = None,
) -> Any:
    """Open a program with its data.

    Parameters
    ----------
    program : Path
        The ``.stan`` file.
    data : mapping
        The variables of its data block.
    engine : str
        ``"cmdstan"`` or ``"stanli"``.
    progress : callable, optional
        Called with a line of text before CmdStan compiles the program.

    Returns
    -------
    StanLibrary or Interpreted
        Has the functions of `StanLibrary` that the benchmark calls.
    """
    if engine == "stanli":
        return Interpreted(program, data)
    from onebasin.stan.library import open_library

    return open_library(program, data, seed=SEED, progress=progress)


class Interpreted:
    """A program in stanli, with the functions of `StanLibrary` that the benchmark calls."""

    def __init__(self, program: Path, data: Mapping[str, Any]) -> None:
        import stanli

        self._model = stanli.bridgestan_model(stan_file=str(program), data=dict(data), seed=SEED)
        self.dim = self._model.param_unc_num()
        self.handle = self._model.model

    def address(self, name: str) -> int:
        """Return the address of a C function."""
        return ctypes.cast(getattr(self._model.stanlib, name), ctypes.c_void_p).value or 0

    def names(self, **blocks: bool) -> tuple[str, ...]:
        """Name the entries of `constrain`."""
        return tuple(self._model.param_names(**blocks))

    def generator(self, seed: int) -> Any:
        """Make a stream of random numbers."""
        return self._model.new_rng(seed)

    def log_density_gradient(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate the log density and its gradient; -inf and NaN at rejected points."""
        values, gradients = np.full(len(points), -np.inf), np.full_like(points, np.nan)
        for i, point in enumerate(points):
            try:
                found = self._model.log_density_gradient(point, propto=True, jacobian=True)
            except RuntimeError:
                continue
            values[i], gradients[i] = found
        return values, gradients

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Evaluate the log density; -inf at rejected points."""
        values = np.full(len(points), -np.inf)
        for i, point in enumerate(points):
            try:
                values[i] = self._model.log_density(point, propto=True, jacobian=True)
            except RuntimeError:
                continue
        return values

    def constrain(self, point: np.ndarray, *, generator: Any = None, **blocks: bool) -> np.ndarray:
        """Constrain one point; NaN where the program rejects it."""
        try:
            return self._model.param_constrain(point, rng=generator, **blocks)
        except RuntimeError:
            return np.full(len(self.names(**blocks)), np.nan)

    def unconstrain(self, values: np.ndarray) -> np.ndarray:
        """Unconstrain parameters; NaN where a value does not satisfy its constraint."""
        try:
            return self._model.param_unconstrain(values)
        except RuntimeError:
            return np.full(self.dim, np.nan)


def warning_of(program: Path, data: Mapping[str, Any]) -> str:
    """Return stanli's warning about a program that it opens; empty if there is none."""
    import stanli

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stanli.Model(stan_file=str(program), data=dict(data), seed=SEED)
    return " ".join(str(w.message) for w in caught if issubclass(w.category, RuntimeWarning))
