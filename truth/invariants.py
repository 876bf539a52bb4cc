"""The invariants of a problem, computed of a posterior."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import View

from .problems.problem import Invariant


def measured(view: View, functions: Mapping[str, Invariant]) -> Draws:
    """Compute invariants; one of several numbers is named by their places, `f[0]`, `f[1]`, ..."""
    values = {name: np.asarray(view.values(name), np.float64) for name in view.variables}
    names: list[str] = []
    columns = []
    for name, function in functions.items():
        found = np.asarray(function(values), np.float64)
        flat = found.reshape(*found.shape[:2], -1)
        names += [name] if found.ndim == 2 else [f"{name}[{i}]" for i in range(flat.shape[2])]
        columns.append(flat)
    empty = np.empty((view.num_chains, view.num_draws, 0))
    return Draws(tuple(names), np.concatenate([empty, *columns], axis=-1))
