"""What a Stan program computes of its own beside the posterior: moved to the groups that ArviZ has for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onebasin.base.files.pieces import cut
from onebasin.models.target import Target
from onebasin.posteriors.kind_names import GENERATED, PARAMETER
from onebasin.posteriors.pointwise import DrawGroup, Values
from onebasin.posteriors.schema import LOG_LIKELIHOOD, LOG_PRIOR, POSTERIOR_PREDICTIVE
from onebasin.stan.groups import Found, find_roles
from onebasin.stan.program import definition

from .origin import Origin

Draws = dict[str, Values]


def stan_groups(
    target: Target, draws: Mapping[str, Values], origin: Origin
) -> tuple[Draws, dict[str, DrawGroup], Found]:
    """Take draws apart: what stays in the posterior, the groups beside it, and what is what.

    What the declared symmetry moves stays, whatever it is called. Nothing is copied and no draw left out: the program
    has computed them.
    """
    program = definition(target)
    kinds = origin.kinds
    moved = {name for block in target.symmetry for name in block.variables}
    named = {name for _, name in program.roles.named}
    shapes = {
        name: values.shape[2:]
        for name, values in draws.items()
        if (kinds.get(name) == GENERATED and name not in moved) or name in named
    }
    derived = [n for n in draws if kinds.get(n, PARAMETER) != PARAMETER and n not in moved]
    data = arrays_of(program.data)
    found = find_roles(program.roles, data, shapes, priors=derived)
    whole = {
        own: _as_whole(draws[own])
        for of, own in found.posterior_predictive.items()
        if of in data and data[of].dtype.kind in "biu"
    }
    draws = {**draws, **whole}
    groups = {
        LOG_LIKELIHOOD: _group(draws, found.log_likelihood, target, found),
        POSTERIOR_PREDICTIVE: _group(draws, found.posterior_predictive, target, found),
        LOG_PRIOR: _group(draws, {n: n for n in found.log_prior}, target, found),
    }
    stays = {name: values for name, values in draws.items() if name not in found.moved}
    if not stays:  # a posterior of nothing is none
        return dict(draws), {}, found
    return stays, {name: group for name, group in groups.items() if group.values}, found


def arrays_of(data: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The data that are arrays of numbers; a tuple of Stan's is none."""
    arrays = {n: np.asarray(v) for n, v in data.items() if not isinstance(v, Mapping)}
    return {name: array for name, array in arrays.items() if array.dtype.kind in "biufc"}


def axes_of(target: Target, found: Found, name: str) -> tuple[str, ...] | None:
    """Names of the axes of observed data: their own, or those of what is of them; None where there are none."""
    for of in (name, found.posterior_predictive.get(name), found.log_likelihood.get(name)):
        if of is not None and of in target.dims:
            return tuple(target.dims[of])
    return None


def _as_whole(values: Values) -> Values:
    """Whole numbers as such, which CmdStan's files do not tell from others; so ArviZ knows counts from measurements."""
    if values.dtype.kind != "f":
        return values
    seen = values if isinstance(values, np.ndarray) else cut(values)
    return seen.astype(np.int64) if bool((seen == np.rint(seen)).all()) else values


def _group(
    draws: Mapping[str, Values], names: Mapping[str, str], target: Target, found: Found
) -> DrawGroup:
    values = {name: draws[own] for name, own in names.items()}
    dims = {n: axes for n in names if (axes := axes_of(target, found, n)) is not None}
    fitting = {n: axes[: values[n].ndim - 2] for n, axes in dims.items()}
    return DrawGroup(values, {n: a for n, a in fitting.items() if len(a) == values[n].ndim - 2})
