"""Leave-one-out cross-validation with ArviZ's PSIS, computed in blocks of observations.

Blocks give the same numbers as `arviz_stats.loo` without storing its matrix of log weights. The log likelihoods may be
in a file. Source: Vehtari, Gelman and Gabry 2017, Statistics and Computing 27.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.card import in_brief
from onebasin.base.errors import ArgumentError

from .draws import Columns
from .pareto import khat_limit
from .schema import LEFT_OUT, LOG_LIKELIHOOD, PROGRAM, SAMPLE_DIMS, stan_program_of
from .view import View

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDDataLOO

AT_ONCE = 2**22
"""Number of bytes of log likelihoods to load at once."""
NAMED = 6
"""Maximum number of observations named in a message."""


def names_of(values: xr.DataArray) -> list[str]:
    """Name each observation by the labels of its axes, or by its position: ``y[3]``, ``y[a,2]``."""
    flat = values.stack(obs=values.dims) if values.ndim != 1 else values
    labels = [flat.indexes.get(flat.dims[0], range(flat.size))][0]
    told = (",".join(map(str, each if isinstance(each, tuple) else (each,))) for each in labels)
    return [f"{values.name or 'y'}[{each}]" for each in told]


def stored_log_likelihood(view: View, var_name: str | None = None) -> xr.DataArray | None:
    """Return the log likelihoods (chain, draw, obs...) of one variable; None if the posterior has none."""
    group = view.group(LOG_LIKELIHOOD)
    if group is None or not group.data_vars:
        return None
    return chosen(dict(group.data_vars), var_name).transpose(*SAMPLE_DIMS, ...)


def chosen(terms: Any, var_name: str | None) -> Any:
    """Return the log likelihoods of one variable; require its name if there are several."""
    names = ", ".join(map(str, terms))
    if var_name is None and len(terms) > 1:
        raise ArgumentError(f"`var_name` is missing: name one of the log likelihoods ({names}).")
    if var_name is not None and var_name not in terms:
        raise ArgumentError(f"`var_name` must name a log likelihood ({names}); got {var_name!r}.")
    return terms[next(iter(terms)) if var_name is None else var_name]


def no_log_likelihood(view: View, remedy: str) -> ArgumentError:
    """Return the error for a posterior without log likelihoods, with advice on `log_lik` for a Stan program."""
    kept = view.parsed(LEFT_OUT)
    why = kept.get(LOG_LIKELIHOOD) if isinstance(kept, dict) else None
    text = str(view.attribute(PROGRAM, ""))
    if not why and text and stan_program_of(view.tree.attrs) and "log_lik" not in text:
        why = "its Stan program does not compute `log_lik`"
        remedy = "add `log_lik` as a generated quantity with the log likelihood of each observation, and sample again."
    reason = f" ({why})" if why else ""
    return ArgumentError(f"`{view.argument}` has no group `log_likelihood`{reason}: {remedy}")


def efficiency(posterior: xr.Dataset, samples: int) -> float:
    """Return the relative ESS that ArviZ's `loo` needs: the mean over all entries, or 1 for a single chain."""
    import arviz_stats  # noqa: F401 - registers the accessor

    if posterior.sizes["chain"] == 1:
        return 1.0
    found = posterior.azstats.ess(method="mean")
    return float(np.hstack([values.values.ravel() for values in found.values()]).mean() / samples)


def leave_one_out(
    terms: xr.DataArray, posterior: xr.Dataset, *, relative: float | None = None
) -> ELPDDataLOO:
    """Estimate the expected log predictive density of every observation from log likelihoods (chain, draw, obs...).

    The draws are needed only to compute the relative ESS; pass `relative` to skip that step. The result equals
    `arviz_stats.loo(..., pointwise=True)` without `log_weights`. Observations whose log likelihood is exactly 0 in
    every draw count as masked and are omitted.
    """
    from arviz_stats.base import dataarray_stats
    from arviz_stats.utils import ELPDDataLOO

    first = terms.isel(chain=0, draw=0, drop=True)
    if not first.ndim:
        raise ArgumentError(
            f"The log likelihood of {terms.name} has only one number per draw. Store one number per observation."
        )
    samples, read = terms.shape[0] * terms.shape[1], Columns([terms]).read
    relative = efficiency(posterior, samples) if relative is None else relative
    found, masked, step = [], np.zeros(first.size, bool), max(1, AT_ONCE // (8 * samples))
    for start in range(0, first.size, step):
        block = read(start, min(start + step, first.size))
        if not (finite := np.isfinite(block).all(axis=(0, 1))).all():
            names = names_of(first)
            bad = [names[start + place] for place in np.flatnonzero(~finite)]
            raise ArgumentError(
                f"The log likelihood of {terms.name} is not finite in some draws for {in_brief(bad, NAMED)}. If "
                "these observations are missing, mask them. Otherwise find out why their log likelihood is not "
                "finite."
            )
        masked[start : start + step] = (block == 0).all(axis=(0, 1))
        found.append(_weighed(block, relative))
    if masked.all():
        raise ArgumentError(
            f"The log likelihood of {terms.name} is exactly 0 in every draw for every observation. Such observations "
            "count as masked, so no observation is left. Unmask at least one observation."
        )
    elpd_i, pareto_k, p_i = (
        _without(first.copy(data=values.reshape(first.shape)), masked)
        for values in np.concatenate(found, axis=1)
    )
    elpd, se, p, _ = dataarray_stats.loo_summary(elpd_i, p_i)
    good = khat_limit(samples)
    about: dict[str, Any] = {"n_samples": samples, "n_data_points": elpd_i.size, "scale": "log"}
    about |= {"warning": bool((pareto_k > good).any()), "good_k": good}
    about |= {"elpd_i": elpd_i, "pareto_k": pareto_k, "p_loo_i": p_i}
    return ELPDDataLOO(elpd=elpd, se=se, p=p, **about)


def _without(values: xr.DataArray, masked: np.ndarray) -> xr.DataArray:
    """Remove masked observations; the others keep their labels or positions."""
    if not masked.any():
        return values
    places = {d: np.arange(n) for d, n in values.sizes.items() if d not in values.coords}
    values = values.assign_coords(places)
    values = values if values.ndim == 1 else values.stack(obs=values.dims)
    return values.isel({values.dims[0]: np.flatnonzero(~masked)})


def _weighed(values: Float[np.ndarray, "chain draw obs"], relative: float) -> np.ndarray:
    """Return the elpd, Pareto k and effective number of parameters of each observation (3, obs).

    The largest importance ratios of an observation may be equal, for example if its log likelihood is the same in every
    draw. Then there is no tail to smooth: the weights are the ratios themselves, and k is 0.
    """
    from arviz_stats.base import dataarray_stats
    from scipy.special import logsumexp

    samples = values.shape[0] * values.shape[1]
    tail = 3 * np.sqrt(samples / relative) if samples > 225 else samples / 5
    tail = int(min(max(tail, 5), samples / 2))  # Number of draws in the tail, as in ArviZ.
    tied = (values == values.min(axis=(0, 1))).sum(axis=(0, 1)) >= tail
    found = np.zeros((3, values.shape[2]))
    own, draws = values[..., tied], np.log(samples)
    if tied.any():
        found[0, tied] = draws - logsumexp(-own, axis=(0, 1))
        found[2, tied] = logsumexp(own, axis=(0, 1)) - draws - found[0, tied]
    if not tied.all():
        block = xr.DataArray(values[..., ~tied], dims=(*SAMPLE_DIMS, "obs"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Callers report a large k.
                # Call the function directly: the accessor would keep every block until the garbage collector runs.
                each = dataarray_stats.loo(block, r_eff=relative)
        except ValueError as error:
            raise ArgumentError(
                f"ArviZ cannot compute importance weights from the log likelihoods ({error}): sample more draws."
            ) from error
        found[:, ~tied] = [part.values for part in each]
    return found
