"""Groups with one number per observation and draw: log likelihoods and predictions.

Their size is draws times observations. To respect a limit in megabytes, all groups keep only every n-th draw, or are
omitted if too few draws would remain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.special import log_softmax

from onebasin.base.checks import check_not_negative
from onebasin.base.run_log import notice

from .schema import CREATED_AT, EVERY, LOG_LIKELIHOOD, OUTPUTS, POSTERIOR_PREDICTIVE
from .scratch import Room, with_axes_of
from .scratch import Values as Values

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


LIMIT_MB = 256.0
"""Default limit for the total size of the groups, in megabytes."""
FEWEST = 100
"""Minimum number of draws in a group; groups with fewer are omitted."""


@dataclass(frozen=True)
class DrawGroup:
    """A group of a posterior: draws or functions of draws."""

    values: Mapping[str, Values]  # A `DataArray` may be in a file.
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # After chain and draw.
    every: int = 1  # Only draws whose number is a multiple of this are kept.
    filed: xr.DataTree | None = None  # The file with the values, if they are on disk.
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def to_dataset(self, coords: Mapping[str, Any] | None = None) -> xr.Dataset:
        """Return the group as a dataset; draws keep the numbers that they have in the posterior."""
        from arviz_base import dict_to_dataset

        dims: Any = {name: list(axes) for name, axes in self.dims.items() if name in self.values}
        # For values in files, create the axes from arrays of the same shape that take no memory.
        filed = {n: v for n, v in self.values.items() if isinstance(v, xr.DataArray)}
        empty = {n: np.broadcast_to(np.zeros((), v.dtype), v.shape) for n, v in filed.items()}
        dataset = dict_to_dataset({**self.values, **empty}, dims=dims)
        for name, values in filed.items():
            dataset = dataset.assign({name: with_axes_of(values, dataset[name])})
        dataset = labelled(dataset, coords or {})
        dataset.attrs.pop(CREATED_AT, None)  # Equal draws must give equal groups.
        dataset.attrs |= dict(self.attrs)
        if self.every > 1:
            dataset = dataset.assign_coords(draw=dataset["draw"] * self.every)
            dataset.attrs[EVERY] = self.every
        return dataset


def labelled(dataset: xr.Dataset, coords: Mapping[str, Any]) -> xr.Dataset:
    """Label the axes of a dataset; omit labels whose number is wrong, with a notice."""
    fitting = {}
    for axis, labels in coords.items():
        if axis in dataset.sizes and len(labels) != (size := dataset.sizes[axis]):
            notice(
                f"`coords` has {len(labels)} labels for {axis}, which has length {size}: they are ignored"
            )
        elif axis in dataset.sizes:
            fitting[axis] = np.asarray(labels)
    return dataset.assign_coords(fitting)


def check_limit(limit_mb: Any) -> float:
    """Return a limit in megabytes after checking it."""
    check_not_negative("predictive_mb", limit_mb)
    return float(limit_mb)


def every_which(chains: int, draws: int, bytes_a_draw: int, limit_mb: float) -> int | None:
    """Return n such that every n-th draw fits the limit; None if too few draws would remain."""
    if not limit_mb:
        return None
    every = max(1, math.ceil(chains * draws * bytes_a_draw / (limit_mb * 1e6)))
    if every > 1 and chains * math.ceil(draws / every) < FEWEST:
        return None
    return every


def why_left_out(bytes_a_draw: int, limit_mb: float) -> str:
    """Explain why the limit excludes a group."""
    if not limit_mb:
        return "predictive_mb=0 excludes it"
    return f"{FEWEST} draws of {bytes_a_draw / 1e6:.3g} MB are more than predictive_mb={limit_mb:g}"


BLOCK = 2**22
"""Number of outputs to compute at once."""
PURPOSE = 1001
"""Combined with the seed of a run, so that predictions have their own random numbers."""


def bytes_a_draw(model: BayesianNetwork, y: np.ndarray) -> int:
    """Return the size of one draw's log likelihoods and predictions in bytes."""
    return len(y) * 8 + y.size * (2 if model.is_classifier else 4)


def network_groups(
    model: BayesianNetwork,
    draws: Mapping[str, Values],
    x: np.ndarray,
    y: np.ndarray,
    *,
    seed: int,
    limit_mb: float,
    folder: Path | None = None,
) -> dict[str, DrawGroup] | None:
    """Compute the groups of log likelihoods and predictions at the data of a network.

    Both groups have the variable `y`: `log_likelihood` (obs), summed over outputs, and `posterior_predictive` with the
    shape of the data in single precision. The draws are the network's weights, and ``sigma`` if the noise is inferred.
    The result is None if the limit in megabytes leaves too few draws. Large results go to a file in `folder`, if it is
    given.
    """
    from onebasin.models.networks.bayesian import mean_and_sd, predict

    names = [*model.network.shapes, *(["sigma"] if model.infers_noise else [])]
    chains, num_draws = np.shape(draws[names[0]])[:2]
    every = every_which(chains, num_draws, bytes_a_draw(model, y), limit_mb)
    if every is None:
        return None
    kept = {name: draws[name][:, ::every] for name in names}
    shape = (chains, kept[names[0]].shape[1])
    room = Room(*shape, folder)
    rng = np.random.default_rng((seed, PURPOSE))
    for chain, rows in _blocks(shape, len(y) * model.network.widths[-1]):
        part = {name: np.asarray(value[chain, rows]) for name, value in kept.items()}
        if model.is_classifier:
            output = predict(model, part, x).astype(np.float64)
            log_likelihood = log_softmax(output, axis=-1)[..., np.arange(len(y)), y]
            # The largest logit after adding Gumbel noise is a draw of the label.
            labels = (output + rng.gumbel(size=output.shape)).argmax(axis=-1)
            replicated = labels.astype(np.int16)
        else:
            mean, sigma = mean_and_sd(model, part, x)
            mean = mean.astype(np.float64)
            residual = (y - mean) / sigma
            terms = -0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
            log_likelihood = terms.sum(axis=-1)
            replicated = (mean + sigma * rng.standard_normal(mean.shape)).astype(np.float32)
        for number, *of_chain in zip(range(chains)[chain], log_likelihood, replicated, strict=True):
            groups = zip((LOG_LIKELIHOOD, POSTERIOR_PREDICTIVE), of_chain, strict=True)
            room.put(number, rows.start or 0, {name: {OUTPUTS: values} for name, values in groups})
    dims = {LOG_LIKELIHOOD: ("obs",), POSTERIOR_PREDICTIVE: ("obs", "out")[: y.ndim]}
    return {
        name: DrawGroup(room.group(name), {OUTPUTS: axes}, every, room.filed)
        for name, axes in dims.items()
    }


def _blocks(shape: tuple[int, int], size: int) -> list[tuple[slice, slice]]:
    """Split chains and draws into blocks; return a single block if they are few.

    The blocks of a chain have equal lengths, because JAX compiles again for each length. The last two may overlap.
    """
    chains, draws = shape
    if chains * draws * size <= BLOCK:
        return [(slice(None), slice(None))]
    step = min(draws, max(1, BLOCK // size))
    firsts = [min(first, draws - step) for first in range(0, draws, step)]
    return [(slice(c, c + 1), slice(f, f + step)) for c in range(chains) for f in firsts]
