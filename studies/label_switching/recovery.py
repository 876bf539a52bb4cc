"""How far an aligned posterior lies from the truth that made the data.

Convention: the truth is known up to the symmetry, so that it is first moved by the group element that brings
it closest to the aligned posterior's mean, in posterior standard deviations of the moved variables; all elements are
gone through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from onebasin.analysis.posterior.view import as_view
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.group import Group

_INTERVAL = (0.025, 0.975)


@dataclass(frozen=True, eq=False)
class Recovery:
    """Posterior and truth, entry by entry."""

    names: tuple[str, ...]  # Names of the entries.
    truth: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    high: np.ndarray
    """`truth`, `mean`, `sd`, `low`, `high`: the truth, moved; posterior means, standard deviations, and the ends of
    central 95 % intervals."""


def recovery_columns(found: Recovery | None, prefix: str = "") -> dict[str, object]:
    """Summarise a recovery as columns of a frame; None where there is no truth to recover.

    Distances of the means from the truth are in posterior standard deviations: their root mean square (about 1 where
    the posterior is as wide as its errors), and the largest with its entry. `inside_95` is the share of the entries
    whose truth lies in the interval.
    """
    columns = ("entries", "rms_sds", "largest_sds", "largest_entry", "inside_95")
    values: list[object] = [None] * len(columns)
    if found:
        gap = np.abs((found.mean - found.truth) / found.sd)
        inside = np.mean((found.low <= found.truth) & (found.truth <= found.high))
        rms, largest = np.sqrt(np.mean(gap**2)), found.names[gap.argmax()]
        values = [len(found.names), float(rms), float(gap.max()), largest, float(inside)]
    return {prefix + name: value for name, value in zip(columns, values, strict=True)}


def recover(
    posterior: xr.DataTree, truth: Mapping[str, np.ndarray], symmetry: Symmetry
) -> Recovery:
    """Hold an aligned posterior against the truth.

    Parameters
    ----------
    posterior : DataTree
        Aligned draws.
    truth : mapping of str to array
        The truth, in any labelling, under the names of the posterior's variables.
    symmetry : Symmetry
        What may move it: permutations, signs and complements.

    Returns
    -------
    Recovery
        Of all entries of the truth.
    """
    draws = as_view(posterior).draws(list(truth))
    values = draws.values.reshape(-1, len(draws.names))
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
    moved = {n: np.asarray(truth[n], float) for block in symmetry for n in block.variables}
    group = Group(symmetry, {name: value.shape for name, value in moved.items()})
    labelled = (_joined({**truth, **group.act(e, moved)}) for e in group.elements())
    closest = min(labelled, key=lambda entries: float((((entries - mean) / sd) ** 2).sum()))
    return Recovery(draws.names, closest, mean, sd, *np.quantile(values, _INTERVAL, axis=0))


def _joined(values: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(value) for value in values.values()])
