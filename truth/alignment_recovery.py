"""Measure the distance of an aligned posterior from the truth that made the data.

Convention: the truth is known up to the symmetry, so that it is first moved by the group element that brings
it closest to the aligned posterior's mean, in posterior standard deviations of the moved variables; all elements are
gone through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.group import Group
from onebasin.posteriors.view import as_view

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
    """`truth`, `mean`, `sd`, `low`, `high`: (param,): The truth, moved; posterior means, standard deviations, and
    the ends of central 95 % intervals."""

    def summary(self) -> dict[str, Any]:
        """Return how many entries there are, and how far the means lie from the truth in posterior standard deviations.

        `rms_sds` is the root mean square of the distances, about 1 where the posterior is as wide as its errors, and
        `inside_95` the share of the entries whose truth lies in the interval.
        """
        gap = np.abs((self.mean - self.truth) / self.sd)
        inside = (self.low <= self.truth) & (self.truth <= self.high)
        return {
            "entries": len(self.names),
            "rms_sds": float(np.sqrt(np.mean(gap**2))),
            "largest_sds": float(gap.max()),
            "largest_entry": self.names[gap.argmax()],
            "inside_95": float(np.mean(inside)),
        }


def recover(
    posterior: xr.DataTree, truth: Mapping[str, np.ndarray], symmetry: Symmetry
) -> Recovery:
    """Compare an aligned posterior with the truth, which may be in any labelling, entry by entry.

    `symmetry` may hold permutations, signs and complements.
    """
    draws = as_view(posterior).draws(list(truth))
    values = draws.values.reshape(-1, len(draws.names))
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
    moved = {n: np.asarray(truth[n], float) for block in symmetry for n in block.variables}
    group = Group(symmetry, {name: value.shape for name, value in moved.items()})
    labelled = (
        np.concatenate([np.ravel(v) for v in {**truth, **group.act(element, moved)}.values()])
        for element in group.elements()
    )
    closest = min(labelled, key=lambda entries: float((((entries - mean) / sd) ** 2).sum()))
    return Recovery(draws.names, closest, mean, sd, *np.quantile(values, _INTERVAL, axis=0))
