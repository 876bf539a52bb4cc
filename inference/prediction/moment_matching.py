"""Moment matching of the observations whose Pareto k is too large, by ArviZ.

Source: Paananen, Piironen, Bürkner and Vehtari 2021, Statistics and Computing 31(2).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from onebasin.base.notices import notice
from onebasin.posteriors import schema
from onebasin.posteriors.leave_one_out import LogLikelihood, efficiency
from onebasin.posteriors.view import View

from .terms import Terms

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDDataLOO


def matched(
    view: View, terms: Terms, log_likelihood: LogLikelihood, found: ELPDDataLOO
) -> ELPDDataLOO:
    """Estimate observations of large Pareto k at draws that are moved to the posterior without each of them.

    Return them with other `elpd_i` and `pareto_k` where Pareto k has become smaller, and no `log_weights`.
    """
    from arviz_stats import loo, loo_moment_match

    shape = (view.num_chains, view.num_draws)
    if log_likelihood.draws != shape:
        notice("moment matching is left out: the group `log_likelihood` holds some of the draws")
        return found
    bad = np.flatnonzero(found.pareto_k.values.ravel() > found.good_k)
    own = np.concatenate([log_likelihood.read(i, i + 1) for i in bad.tolist()], axis=2)
    data = xr.DataTree.from_dict(
        {schema.LOG_LIKELIHOOD: xr.Dataset({"y": ((*schema.SAMPLE_DIMS, "obs"), own)})}
    )
    draws = {name: view.values(name) for name in terms.names}
    vectors = terms.unconstrain({n: v.reshape(-1, *v.shape[2:]) for n, v in draws.items()})
    relative = efficiency(view.posterior, vectors.shape[0])

    def log_density(moved: xr.DataArray) -> xr.DataArray:
        return _as_draws(terms.log_density(_rows(moved)), shape)

    def one(moved: xr.DataArray, i: np.integer) -> xr.DataArray:
        values = terms.at(terms.constrain(_rows(moved)))[log_likelihood.name]
        return _as_draws(values.reshape(len(values), -1)[:, bad[i]], shape)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large k, which the caller reports
        again = loo_moment_match(
            data,
            loo(data, pointwise=True, reff=relative),
            log_prob_upars_fn=log_density,
            log_lik_i_upars_fn=one,
            upars=xr.DataArray(vectors.reshape(*shape, -1), dims=(*schema.SAMPLE_DIMS, "param")),
            reff=relative,
            pointwise=True,
        )
    elpd_i, pareto_k = found.elpd_i.copy(), found.pareto_k.copy()
    for of, better in ((elpd_i, again.elpd_i), (pareto_k, again.pareto_k)):
        np.put(of.values, bad, better.values)
    elpd = float(elpd_i.sum())
    changed: dict[str, Any] = dict.fromkeys(("log_weights", "p_loo_i"))
    return replace(
        found,
        **changed,
        elpd=elpd,
        se=float(np.sqrt(elpd_i.size * np.var(elpd_i.values, ddof=1))),
        p=found.p + found.elpd - elpd,
        warning=bool((pareto_k > found.good_k).any()),
        elpd_i=elpd_i,
        pareto_k=pareto_k,
        influence_pareto_k=found.pareto_k,
    )


def _rows(moved: xr.DataArray) -> np.ndarray:
    values = moved.transpose(*schema.SAMPLE_DIMS, "param").values
    return values.reshape(-1, values.shape[-1])


def _as_draws(values: np.ndarray, shape: tuple[int, int]) -> xr.DataArray:
    return xr.DataArray(values.reshape(shape), dims=schema.SAMPLE_DIMS)
