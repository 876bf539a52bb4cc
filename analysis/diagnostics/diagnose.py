"""Diagnose a posterior: convergence, effective sample size, sampler health, cost.

Convention: a Markov chain is judged by R-hat, ESS, divergences, trees and E-BFMI, a variational fit
by Pareto k-hat and ELBO; which of the two it is follows from the tree alone. All estimators are
arviz_stats'. What a wrong number means and what to do about it is in the result's `warnings`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from ..compare.moments import MomentComparison, compare_moments
from ..posterior.sampler import NAN, SamplerSummary, summarise_sampler
from ..posterior.summary import is_constant, summarise
from ..posterior.variational import VariationalSummary, summarise_variational
from ..posterior.view import Draws, declares_equal_modes, is_variational, read_draws
from .advice import note, warn
from .result import Diagnosis, Extreme, Limits

__all__ = [
    "Diagnosis",
    "Extreme",
    "Limits",
    "MomentComparison",
    "SamplerSummary",
    "VariationalSummary",
    "compare_moments",
    "diagnose",
]


def diagnose(
    posterior: xr.DataTree,
    *,
    var_names: str | Sequence[str] | None = None,
    rhat_threshold: float = 1.01,
    ess_per_chain: float = 100.0,
    bfmi_threshold: float = 0.3,
) -> Diagnosis:
    """Diagnose one posterior.

    Parameters
    ----------
    posterior
        The posterior, as an inference method returned it or as read from a file.
    var_names
        The variables to look at; all of them by default.
    rhat_threshold
        R-hat above this is warned of.
    ess_per_chain
        Bulk or tail ESS below this times the number of chains is warned of.
    bfmi_threshold
        E-BFMI below this is warned of.

    Returns
    -------
    Diagnosis
        Table, worst values, sampler statistics, cost, warnings.

    Raises
    ------
    TypeError
        If `posterior` is not a `DataTree`.
    ValueError
        If it has no group `posterior`, fewer than 4 draws a chain or draws that are not finite, if
        `var_names` asks for what is not there, or a threshold makes no sense.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Rank-normalization, folding, and
    localization: an improved R-hat, Bayesian Analysis 16(2). Betancourt 2016, Diagnosing suboptimal
    cotangent disintegrations in Hamiltonian Monte Carlo (E-BFMI).
    """
    limits = Limits(rhat_threshold, ess_per_chain, bfmi_threshold)
    draws = read_draws(posterior, var_names)
    variational = is_variational(posterior)
    table = summarise(draws)
    if variational:  # draws of one approximation agree, however far off it is
        table["rhat"] = NAN
    diagnosis = _assemble(posterior, draws, table, variational)
    diagnosis = replace(diagnosis, limits=limits)
    return replace(diagnosis, warnings=warn(diagnosis), notes=note(diagnosis))


def _assemble(tree: xr.DataTree, draws: Draws, table: pd.DataFrame, variational: bool) -> Diagnosis:
    sampler = None if variational else summarise_sampler(tree)
    ess_bulk = _extreme(table["ess_bulk"], smallest=True)
    constants = np.asarray(draws.names)[is_constant(draws.values)]
    return Diagnosis(
        target=str(tree.attrs.get("target", "")),
        engine=str(tree.attrs.get("engine", "")),
        method=str(tree.attrs.get("method", "")),
        num_chains=draws.num_chains,
        num_draws=draws.num_draws,
        parameters=table,
        rhat=_extreme(table["rhat"], smallest=False),
        ess_bulk=ess_bulk,
        ess_tail=_extreme(table["ess_tail"], smallest=True),
        constants=tuple(str(name) for name in constants),
        sampler=sampler,
        variational=summarise_variational(tree) if variational else None,
        ess_per_second=_ratio(ess_bulk.value, sampler.sampling_seconds if sampler else None),
        ess_per_gradient=_ratio(ess_bulk.value, sampler.gradient_evaluations if sampler else None),
        wall_time=float(tree.attrs.get("wall_time", NAN)),
        symmetric=declares_equal_modes(tree),
    )


def _extreme(column: pd.Series, *, smallest: bool) -> Extreme:
    known = column.dropna()  # constants and single chains have none; `constants` names them
    if known.empty:
        return Extreme()
    name = known.idxmin() if smallest else known.idxmax()
    return Extreme(float(known[name]), str(name))


def _ratio(value: float, cost: float | None) -> float:
    return value / cost if cost else NAN
