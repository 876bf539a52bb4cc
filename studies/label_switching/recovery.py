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
    """Posterior and truth, entry by entry.

    Attributes
    ----------
    names : tuple of str
        Names of the entries.
    truth, mean, sd, low, high : array (param,)
        The truth, moved; posterior means, standard deviations, and the ends of central 95 % intervals.
    """

    names: tuple[str, ...]
    truth: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """Distances of the means from the truth, in posterior standard deviations."""
        return (self.mean - self.truth) / self.sd

    @property
    def rms(self) -> float:
        """Their root mean square; about 1 where the posterior is as wide as its errors."""
        return float(np.sqrt(np.mean(self.z**2)))

    @property
    def largest(self) -> float:
        """The largest of them."""
        return float(np.abs(self.z).max())

    @property
    def where(self) -> str:
        """The entry that has it."""
        return self.names[int(np.abs(self.z).argmax())]

    @property
    def inside(self) -> float:
        """Share of the entries whose truth lies in the 95 % interval."""
        return float(np.mean((self.low <= self.truth) & (self.truth <= self.high)))


def recovery_columns(found: Recovery | None, prefix: str = "") -> dict[str, object]:
    """Name a recovery's numbers as columns of a frame; None where there is no truth to recover."""
    values = (
        (len(found.names), found.rms, found.largest, found.where, found.inside)
        if found
        else [None] * 5
    )
    names = ("entries", "rms_sds", "largest_sds", "largest_entry", "inside_95")
    return {prefix + name: value for name, value in zip(names, values, strict=True)}


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
    dataset = as_view(posterior).posterior
    draws = {
        name: np.asarray(dataset[name].transpose("chain", "draw", ...).values, np.float64)
        for name in truth
    }
    moved = _closest(draws, truth, symmetry)
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in draws.items()}
    ends = {name: np.quantile(values, _INTERVAL, axis=0) for name, values in flat.items()}
    return Recovery(
        names=tuple(entry for name in truth for entry in _entries(name, truth[name].shape)),
        truth=_joined(moved),
        mean=_joined({name: values.mean(axis=0) for name, values in flat.items()}),
        sd=_joined({name: values.std(axis=0, ddof=1) for name, values in flat.items()}),
        low=_joined({name: low for name, (low, _) in ends.items()}),
        high=_joined({name: high for name, (_, high) in ends.items()}),
    )


def _closest(
    draws: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray], symmetry: Symmetry
) -> dict[str, np.ndarray]:
    """Move the truth by the element that brings it closest to the posterior."""
    names = list(dict.fromkeys(name for block in symmetry for name in block.variables))
    values = {name: np.asarray(truth[name], np.float64) for name in names}
    group = Group(symmetry, {name: value.shape for name, value in values.items()})
    mean = {name: draws[name].mean(axis=(0, 1)) for name in names}
    sd = {name: draws[name].std(axis=(0, 1), ddof=1) for name in names}

    def distance(moved: Mapping[str, np.ndarray]) -> float:
        return sum(float((((moved[n] - mean[n]) / sd[n]) ** 2).sum()) for n in names)

    best = min((group.act(element, values) for element in group.elements()), key=distance)
    return {name: np.asarray(best.get(name, truth[name]), np.float64) for name in truth}


def _entries(name: str, shape: tuple[int, ...]) -> list[str]:
    if not shape:
        return [name]
    return [f"{name}[{','.join(map(str, place))}]" for place in np.ndindex(shape)]


def _joined(values: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(value) for value in values.values()])
