"""All that a posterior holds beside its draws, whatever the model is stated in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import xarray as xr

from onebasin.base.notices import notice
from onebasin.base.precision import precision
from onebasin.models.target import Named, Target
from onebasin.posteriors import schema
from onebasin.posteriors.network_groups import bytes_a_draw, network_groups
from onebasin.posteriors.pointwise import DrawGroup, Values, labelled, why_left_out

from .origin import NOWHERE, Origin, with_axes

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import NetworkTarget

POINTWISE = (schema.LOG_LIKELIHOOD, schema.POSTERIOR_PREDICTIVE)


@dataclass(frozen=True)
class Beside:
    """What is beside the draws, and what of the draws is left.

    Attributes
    ----------
    draws : mapping of str to array (chain, draw, ...)
        The group `posterior`.
    groups : mapping of str to DrawGroup
        Log likelihoods, predictions, log priors.
    observed, constant : mapping of str to (axes, array)
        The data.
    left_out : mapping of str to str
        Group that is not there although it could be, and why.
    """

    draws: Mapping[str, Values]
    groups: Mapping[str, DrawGroup] = field(default_factory=dict)
    observed: Mapping[str, Named] = field(default_factory=dict)
    constant: Mapping[str, Named] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def datasets(self, coords: Mapping[str, Any]) -> dict[str, xr.Dataset]:
        """The groups beside `posterior`."""
        found = {name: group.to_dataset(coords) for name, group in self.groups.items()}
        data = {schema.OBSERVED_DATA: self.observed, schema.CONSTANT_DATA: self.constant}
        for name, arrays in data.items():
            if arrays:
                found[name] = labelled(xr.Dataset(dict(arrays)), coords)
        return found


def beside(
    target: Target,
    draws: Mapping[str, Values],
    origin: Origin,
    *,
    engine: str,
    seed: int,
    dtype: str,
    limit_mb: float,
    folder: Path | None = None,
) -> Beside:
    """Find or compute all that goes beside a run's draws.

    What is much of it goes to `folder`, if one is given. Draws are never lost over it: where a log likelihood or a
    prediction cannot be computed, a notice says why, and so does `left_out`.
    """
    if origin is NOWHERE:
        return Beside(draws, observed=target.outputs, constant=target.inputs)
    if target.is_network:
        return _of_network(cast("NetworkTarget", target), draws, seed, dtype, limit_mb, folder)
    if engine == "stan":
        return _of_stan(target, draws, origin)
    return _of_numpyro(target, draws, origin, seed, dtype, limit_mb, folder)


def _of_network(
    target: NetworkTarget,
    draws: Mapping[str, Values],
    seed: int,
    dtype: str,
    limit_mb: float,
    folder: Path | None,
) -> Beside:
    with precision(dtype):
        groups = network_groups(
            target.model, draws, target.x, target.y, seed=seed, limit_mb=limit_mb, folder=folder
        )
    left = {}
    if groups is None:
        why = why_left_out(bytes_a_draw(target.model, target.y), limit_mb)
        left = dict.fromkeys(POINTWISE, why)
    return Beside(draws, groups or {}, target.outputs, target.inputs, left)


def _of_stan(target: Target, draws: Mapping[str, Values], origin: Origin) -> Beside:
    from onebasin.stan.program import definition

    from .groups_stan import arrays_of, axes_of, stan_groups

    stays, groups, found = stan_groups(target, draws, origin)
    arrays = arrays_of(definition(target).data)
    axes = {name: axes_of(target, found, name) or () for name in arrays}
    named = with_axes(arrays, axes)
    return Beside(
        stays,
        groups,
        {name: named[name] for name in found.observed},
        {name: value for name, value in named.items() if name not in found.observed},
    )


def _of_numpyro(
    target: Target,
    draws: Mapping[str, Values],
    origin: Origin,
    seed: int,
    dtype: str,
    limit_mb: float,
    folder: Path | None = None,
) -> Beside:
    from .groups_numpyro import numpyro_groups, reason

    groups: dict[str, DrawGroup] = {}
    left: dict[str, str] = {}
    if origin.observed:
        try:
            with precision(dtype):
                groups, left = numpyro_groups(
                    target, draws, origin.dims, seed=seed, limit_mb=limit_mb, folder=folder
                )
        except Exception as error:
            left = dict.fromkeys(POINTWISE, reason(error))
        if limit_mb:
            for group, why in left.items():
                notice(f"The posterior of {target.name!r} has no group {group}: {why}.")
    return Beside(draws, groups, origin.observed, origin.constant, left)
