"""PSIS leave-one-out cross-validation by ArviZ, some observations at a time where log likelihoods are many.

Source: Vehtari, Gelman and Gabry 2017, Statistics and Computing 27; of subsamples, Magnusson and others 2020, AISTATS.
Blocks give the numbers that ArviZ gives for all observations at once, without the matrix of log weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError

from .schema import LEFT_OUT, LOG_LIKELIHOOD, SAMPLE_DIMS
from .view import View

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDDataLOO, ELPDDataLOOSubsample

TOGETHER = 2**24
"""Bytes of log likelihoods of which all weights are computed at once."""


def stored_log_likelihood(view: View, var_name: str | None = None) -> xr.DataArray | None:
    """Return a posterior's log likelihoods (chain, draw, obs...); None where it has none.

    Raises
    ------
    ValueError
        If there are several and none is chosen, or there is none of the name.
    """
    group = view.group(LOG_LIKELIHOOD)
    names = [] if group is None else list(map(str, group.data_vars))
    if group is None or not names:
        return None
    return chosen(dict(group.data_vars), var_name).transpose(*SAMPLE_DIMS, ...)


def chosen(terms: Any, var_name: str | None) -> Any:
    """Return the log likelihoods of one variable.

    Raises
    ------
    ValueError
        If there are several and none is chosen, or there is none of the name.
    """
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


def leave_one_out(
    terms: xr.DataArray, posterior: xr.Dataset, *, relative: float | None = None
) -> ELPDDataLOO:
    """Estimate the expected log predictive density of every observation.

    Parameters
    ----------
    terms : DataArray (chain, draw, obs...)
        Log likelihoods, in memory or in a file.
    posterior : Dataset
        The draws, for their effective number.
    relative : float, optional
        Effective draws a draw, if known.

    Returns
    -------
    ELPDDataLOO
        As of `arviz_stats.loo(..., pointwise=True)`; without `log_weights` where they are many.

    Raises
    ------
    ValueError
        If there is one number a draw, or one is not finite.
    """
    from arviz_stats import loo
    from arviz_stats.utils import ELPDDataLOO

    samples = _check(terms)
    relative = efficiency(posterior, samples) if relative is None else relative
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large k, which callers report
        if terms.nbytes <= TOGETHER:
            _check_finite(terms, terms.values)
            tree = xr.DataTree.from_dict({LOG_LIKELIHOOD: terms.to_dataset(name=terms.name or "y")})
            return loo(tree, pointwise=True, reff=relative)
        parts = [block.azstats.loo(r_eff=relative) for _, block in _blocks(terms)]
        joined = (np.concatenate([part[place].values for part in parts]) for place in range(3))
        elpd_i, pareto_k, p_i = (_as_observations(terms, values) for values in joined)
        elpd, se, p, _ = elpd_i.azstats.loo_summary(p_i)
    limit = good_k(samples)
    return ELPDDataLOO(
        elpd=elpd,
        se=se,
        p=p,
        n_samples=samples,
        n_data_points=int(elpd_i.size),
        scale="log",
        warning=bool((pareto_k > limit).any()),
        good_k=limit,
        elpd_i=elpd_i,
        pareto_k=pareto_k,
        p_loo_i=p_i,
    )


def leave_some_out(
    terms: xr.DataArray, posterior: xr.Dataset, observations: np.ndarray
) -> ELPDDataLOOSubsample:
    """Estimate the same from importance weights of some observations, by the difference to all log densities.

    Parameters
    ----------
    terms, posterior : DataArray (chain, draw, obs...), Dataset
        As of `leave_one_out`.
    observations : array of int
        Places of the observations whose weights are computed, in increasing order.

    Returns
    -------
    ELPDDataLOOSubsample
        As of `arviz_stats.loo_subsample(..., pointwise=True)`, without weights; NaN for other observations.

    Raises
    ------
    ValueError
        As `leave_one_out`.
    """
    import arviz_stats  # noqa: F401 - which adds the accessor
    from arviz_stats.utils import ELPDDataLOOSubsample
    from scipy.special import logsumexp

    samples = _check(terms)
    relative = efficiency(posterior, samples)
    lpd, found = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large k, which callers report
        for first, block in _blocks(terms):
            lpd.append(logsumexp(block.values, axis=(0, 1)) - np.log(samples))
            some = observations[(observations >= first) & (observations < first + block.shape[2])]
            if some.size:
                found.append(block.isel(obs=some - first).azstats.loo(r_eff=relative))
    parts = [np.concatenate([part[place].values for part in found]) for place in range(3)]
    dense = np.concatenate(lpd)
    some_i, all_i, own_i = (
        xr.DataArray(v, dims="obs") for v in (parts[0], dense, dense[observations])
    )
    elpd, subsampling_se, se = some_i.azstats.diff_srs_estimator(
        lpd_approx_sample=own_i, lpd_approx_all=all_i, n_data_points=dense.size
    )
    p, _, _ = xr.DataArray(parts[2], dims="obs").azstats.srs_estimator(n_data_points=dense.size)
    whole = []
    for values in parts[:2]:
        filled = np.full(dense.size, np.nan)
        filled[observations] = values
        whole.append(_as_observations(terms, filled))
    limit = good_k(samples)
    return ELPDDataLOOSubsample(
        elpd=elpd,
        se=se,
        p=p,
        n_samples=samples,
        n_data_points=dense.size,
        scale="log",
        warning=bool((parts[1] > limit).any()),
        good_k=limit,
        elpd_i=whole[0],
        pareto_k=whole[1],
        subsample_size=len(observations),
        subsampling_se=subsampling_se,
        loo_subsample_observations=observations,
        elpd_loo_approx=_as_observations(terms, dense),
    )


def good_k(samples: int) -> float:
    """Return the Pareto k up to which an estimate from so many draws can be trusted (Vehtari and others 2024)."""
    return min(1 - 1 / np.log10(samples), 0.7) if samples > 1 else 0.7


def _check(terms: xr.DataArray) -> int:
    if terms.ndim < 3:
        raise ArgumentError(
            f"The log likelihood of {terms.name} is one number a draw; leave-one-out needs one for each observation."
        )
    return int(prod(terms.shape[:2]))


def _check_finite(terms: xr.DataArray, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ArgumentError(
            f"The log likelihood of {terms.name} is not finite in some draws: find out for which observations the "
            "model gives that, or leave them out."
        )


def _blocks(terms: xr.DataArray) -> Iterator[tuple[int, xr.DataArray]]:
    """Yield the observations in order, some at a time (chain, draw, obs), and the number of the first of each."""
    from .draws import Columns

    columns = Columns([terms])
    step = max(1, TOGETHER // (8 * prod(terms.shape[:2])))
    count = prod(terms.shape[2:])
    for first in range(0, count, step):
        values = columns.read(first, min(first + step, count))
        _check_finite(terms, values)
        yield first, xr.DataArray(values, dims=(*SAMPLE_DIMS, "obs"), name=terms.name)


def _as_observations(terms: xr.DataArray, values: np.ndarray) -> xr.DataArray:
    """Give numbers of observations the axes and labels of these."""
    like = terms.isel(chain=0, draw=0, drop=True)
    coords = {name: c for name, c in like.coords.items() if set(c.dims) <= set(like.dims)}
    return xr.DataArray(values.reshape(like.shape), dims=like.dims, coords=coords, name=terms.name)
