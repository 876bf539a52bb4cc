"""PSIS leave-one-out cross-validation by ArviZ, some observations at a time where log likelihoods are many.

Source: Vehtari, Gelman and Gabry 2017, Statistics and Computing 27; of subsamples, Magnusson and others 2020, AISTATS.
Blocks give the numbers that ArviZ gives for all observations at once, without the matrix of log weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from onebasin.base.card import in_brief
from onebasin.base.errors import ArgumentError

from .draws import Columns
from .schema import LEFT_OUT, LOG_LIKELIHOOD, SAMPLE_DIMS
from .view import View

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDDataLOO, ELPDDataLOOSubsample

TOGETHER = 2**22
"""Bytes of log likelihoods of which all weights are computed at once, where not all are."""
WHOLE = 2**25
"""Bytes of all log likelihoods up to which all weights are computed at once, and kept."""


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """Log likelihoods at all draws, read some observations at a time."""

    name: str  # The data that they are of.
    draws: tuple[int, int]  # Chains and draws.
    like: xr.DataArray  # Of the shape, axes and labels of the observations.
    read: Callable[[int, int], np.ndarray]
    """Gives observations from one number to before another (chain, draw, obs), counted in C order."""
    places: np.ndarray | None = None  # Those of all observations that are here; None for all.
    masked: int = 0  # How many were left out.

    @classmethod
    def of(cls, terms: xr.DataArray) -> LogLikelihood:
        """Take an array (chain, draw, obs...), in memory or in a file, without observations that are masked."""
        first = terms.isel(chain=0, draw=0, drop=True)
        sizes = (terms.shape[0], terms.shape[1])
        return cls(str(terms.name), sizes, first, Columns([terms]).read).seen(first.values)

    def seen(self, first: np.ndarray) -> LogLikelihood:
        """Leave observations out that are masked: a log likelihood of exactly 0 in every draw adds nothing to any sum.

        `first` has the log likelihoods of one draw.
        """
        masked = first.ravel() == 0
        step = self._at_once
        for start in range(0, self.count if masked.any() else 0, step):
            part = slice(start, min(start + step, self.count))
            if masked[part].any():
                masked[part] &= (self.read(part.start, part.stop) == 0).all(axis=(0, 1))
        if not self.like.ndim or not masked.any():
            return self
        if masked.all():
            raise ArgumentError(
                f"The log likelihood of {self.name} is 0 in every draw: all observations are masked, so that there is "
                "nothing to leave out."
            )
        like = self.like.assign_coords(
            {d: np.arange(n) for d, n in self.like.sizes.items() if d not in self.like.coords}
        )
        like = like if like.ndim == 1 else like.stack(obs=like.dims)
        places = np.flatnonzero(~masked)

        def read(start: int, stop: int) -> np.ndarray:
            own = places[start:stop]
            return self.read(int(own[0]), int(own[-1]) + 1)[..., own - own[0]]

        like = like.isel({like.dims[0]: places})
        return replace(self, like=like, read=read, places=places, masked=int(masked.sum()))

    @property
    def _at_once(self) -> int:
        whole = 8 * self.samples * self.count <= WHOLE
        return max(1, self.count if whole else at_once(self.samples))

    @property
    def samples(self) -> int:
        """Number of draws of all chains."""
        return prod(self.draws)

    @property
    def count(self) -> int:
        """Number of observations."""
        return prod(self.like.shape)

    def blocks(self) -> Iterator[tuple[int, xr.DataArray]]:
        """Yield observations (chain, draw, obs), some at a time, and the number of the first of each.

        Rejected are log likelihoods of one number a draw, and what is not finite.
        """
        if not self.like.ndim:
            raise ArgumentError(
                f"The log likelihood of {self.name} is one number a draw; leave-one-out needs one for each observation."
            )
        step = self._at_once
        for first in range(0, self.count, step):
            values = self.read(first, min(first + step, self.count))
            if not (finite := np.isfinite(values).all(axis=(0, 1))).all():
                bad = [names_of(self.like)[first + place] for place in np.flatnonzero(~finite)]
                raise ArgumentError(
                    f"The log likelihood of {self.name} is not finite in some draws for {in_brief(bad, NAMED)}: mask "
                    "an observation that is missing, and find out why the model gives others no finite density."
                )
            yield first, xr.DataArray(values, dims=(*SAMPLE_DIMS, "obs"))

    def as_observations(self, values: np.ndarray) -> xr.DataArray:
        """Give a number for each observation their axes and labels."""
        return self.like.copy(data=values.reshape(self.like.shape)).rename(self.name)


def names_of(values: xr.DataArray) -> list[str]:
    """Name each observation by the labels of its axes, or by its place: ``y[3]``, ``y[a,2]``."""
    flat = values.stack(obs=values.dims) if values.ndim != 1 else values
    labels = [flat.indexes.get(flat.dims[0], range(flat.size))][0]
    told = (",".join(map(str, each if isinstance(each, tuple) else (each,))) for each in labels)
    return [f"{values.name or 'y'}[{each}]" for each in told]


def at_once(samples: int) -> int:
    """Return how many observations' log likelihoods, at so many draws, are in memory at once."""
    return max(1, TOGETHER // (8 * samples))


def stored_log_likelihood(view: View, var_name: str | None = None) -> xr.DataArray | None:
    """Return a posterior's log likelihoods (chain, draw, obs...), of one variable; None where it has none."""
    group = view.group(LOG_LIKELIHOOD)
    names = [] if group is None else list(map(str, group.data_vars))
    if group is None or not names:
        return None
    return chosen(dict(group.data_vars), var_name).transpose(*SAMPLE_DIMS, ...)


def chosen(terms: Any, var_name: str | None) -> Any:
    """Return the log likelihoods of one variable; refuse a choice among several, and an unknown name."""
    names = ", ".join(map(str, terms))
    if var_name is None and len(terms) > 1:
        raise ArgumentError(f"`var_name` is needed, as there are log likelihoods of {names}.")
    if var_name is not None and var_name not in terms:
        raise ArgumentError(f"`var_name` is {var_name!r}; there are log likelihoods of {names}.")
    return terms[next(iter(terms)) if var_name is None else var_name]


def why_none(view: View) -> str:
    """Say why a posterior has no log likelihoods."""
    kept = view.parsed(LEFT_OUT)
    why = kept.get(LOG_LIKELIHOOD) if isinstance(kept, dict) else None
    return f"`{view.argument}` has no group `log_likelihood`" + (f" ({why})" if why else "")


def efficiency(posterior: xr.Dataset, samples: int) -> float:
    """Return the effective draws a draw, as ArviZ's `loo` takes them: the mean over all entries, 1 of one chain."""
    import arviz_stats  # noqa: F401 - which adds the accessor

    if posterior.sizes["chain"] == 1:
        return 1.0
    found = posterior.azstats.ess(method="mean")
    return float(np.hstack([values.values.ravel() for values in found.values()]).mean() / samples)


NAMED = 6
"""Observations that a sentence names at most."""


def leave_one_out(
    terms: LogLikelihood, posterior: xr.Dataset, *, relative: float | None = None
) -> ELPDDataLOO:
    """Estimate the expected log predictive density of every observation.

    The draws are needed for their effective number, unless that, relative to the number of draws, is given. The result
    is that of `arviz_stats.loo(..., pointwise=True)`; without `log_weights` where they are many.
    """
    from arviz_stats import loo
    from arviz_stats.base import dataarray_stats
    from arviz_stats.utils import ELPDDataLOO

    relative = efficiency(posterior, terms.samples) if relative is None else relative
    limit, parts = good_k(terms.samples), []
    for _, block in terms.blocks():
        if block.shape[2] == terms.count and terms.places is None:
            whole = block.values.reshape(*terms.draws, *terms.like.shape)
            own = terms.like.expand_dims(dict(zip(SAMPLE_DIMS, terms.draws, strict=True)))
            held = own.copy(data=whole).to_dataset(name=terms.name)
            tree = xr.DataTree.from_dict({LOG_LIKELIHOOD: held})
            with suppress(ValueError), _quiet():  # of ratios without a tail
                return loo(tree, pointwise=True, reff=relative)
        parts.append(_weighed(block, relative))
    elpd_i, pareto_k, p_i = map(terms.as_observations, np.concatenate(parts, axis=1))
    elpd, se, p, _ = dataarray_stats.loo_summary(elpd_i, p_i)
    return ELPDDataLOO(
        elpd=elpd,
        se=se,
        p=p,
        n_samples=terms.samples,
        n_data_points=terms.count,
        scale="log",
        warning=bool((pareto_k > limit).any()),
        good_k=limit,
        elpd_i=elpd_i,
        pareto_k=pareto_k,
        p_loo_i=p_i,
    )


def leave_some_out(
    terms: LogLikelihood, posterior: xr.Dataset, observations: np.ndarray
) -> ELPDDataLOOSubsample:
    """Estimate the same from importance weights of some observations, by the difference to all log densities.

    The places of those observations are in increasing order. The result is that of
    `arviz_stats.loo_subsample(..., pointwise=True)`, without weights; NaN for other observations.
    """
    from arviz_stats.base import dataarray_stats
    from arviz_stats.utils import ELPDDataLOOSubsample
    from scipy.special import logsumexp

    relative, limit = efficiency(posterior, terms.samples), good_k(terms.samples)
    dense, parts = np.empty(terms.count), []
    for first, block in terms.blocks():
        place = slice(first, first + block.shape[2])
        dense[place] = logsumexp(block.values, axis=(0, 1)) - np.log(terms.samples)
        some = observations[(observations >= first) & (observations < place.stop)] - first
        if some.size:
            parts.append(_weighed(block.isel(obs=some), relative))
    some_i, k_i, p_i = (xr.DataArray(v, dims="obs") for v in np.concatenate(parts, axis=1))
    own_i, all_i = (xr.DataArray(v, dims="obs") for v in (dense[observations], dense))
    elpd, subsampling_se, se = dataarray_stats.diff_srs_estimator(some_i, own_i, all_i, terms.count)
    whole = np.full((2, terms.count), np.nan)
    whole[:, observations] = some_i, k_i
    return ELPDDataLOOSubsample(
        elpd=elpd,
        se=se,
        p=dataarray_stats.srs_estimator(p_i, terms.count)[0],
        n_samples=terms.samples,
        n_data_points=terms.count,
        scale="log",
        warning=bool((k_i > limit).any()),
        good_k=limit,
        elpd_i=terms.as_observations(whole[0]),
        pareto_k=terms.as_observations(whole[1]),
        subsample_size=len(observations),
        subsampling_se=subsampling_se,
        loo_subsample_observations=observations,
        elpd_loo_approx=terms.as_observations(dense),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let ArviZ compute without its warnings of large k, which callers report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _weighed(block: xr.DataArray, relative: float) -> np.ndarray:
    """Return elpd, Pareto k and effective parameters (3, obs) of observations (chain, draw, obs).

    The largest importance ratios of an observation may all be one number, as where its log likelihood is the same in
    every draw. These have no tail to smooth: the weights are the ratios themselves, and k is 0.
    """
    from arviz_stats.base import dataarray_stats
    from scipy.special import logsumexp

    values = block.values
    samples = values.shape[0] * values.shape[1]
    tail = 3 * np.sqrt(samples / relative) if samples > 225 else samples / 5
    tail = int(min(max(tail, 5), samples / 2))  # draws in it, as ArviZ has it
    tied = (values == values.min(axis=(0, 1))).sum(axis=(0, 1)) >= tail
    found = np.zeros((3, values.shape[2]))
    own, draws = values[..., tied], np.log(samples)
    if tied.any():
        found[0, tied] = draws - logsumexp(-own, axis=(0, 1))
        found[2, tied] = logsumexp(own, axis=(0, 1)) - draws - found[0, tied]
    if not tied.all():
        try:
            with _quiet():
                # Not by the accessor, which keeps every block until the garbage collector comes.
                each = dataarray_stats.loo(block.isel(obs=~tied), r_eff=relative)
        except ValueError as error:
            raise ArgumentError(
                f"The log likelihoods have no importance weights ({error}): sample more draws."
            ) from error
        found[:, ~tied] = [part.values for part in each]
    return found


def good_k(samples: int) -> float:
    """Return the Pareto k up to which an estimate from that many draws can be trusted (Vehtari and others 2024)."""
    return min(1 - 1 / np.log10(samples), 0.7) if samples > 1 else 0.7
