"""Measure a posterior: convergence, effective sample size, sampler health, cost.

Convention: a Markov chain is judged by R-hat, ESS, divergences, trees and E-BFMI, a variational fit
by Pareto k-hat and ELBO; which of the two it is follows from the tree alone. All estimators are
arviz_stats'. What a wrong number means and what to do about it is in the result's `warnings`, what could not be
judged in its `notes`: a number that is missing or not finite passes no check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import Posterior, View, as_view

from ..discovery.resolve import resolve
from ..summaries.sampler import NAN, sampler_summary
from ..summaries.summary import tabulate
from ..summaries.variational import variational_summary
from .advice import judge, note, warn
from .result import Diagnosis, Extreme, Limits


def measure(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rhat_max: float = 1.01,
    ess_threshold: float | None = None,
    bfmi_threshold: float = 0.3,
) -> Diagnosis:
    """Diagnose one posterior as its draws came, without an answer to whether it may be used.

    Parameters
    ----------
    posterior
        The posterior, as an inference method returned it or as read from a file, or what ArviZ converts to one.
    var_names
        The variables to look at; all of them by default.
    rhat_max
        R-hat above this is warned of.
    ess_threshold
        Bulk or tail ESS below this is warned of; by default 100 times the number of chains.
    bfmi_threshold
        E-BFMI below this is warned of.

    Returns
    -------
    Diagnosis
        Table, worst values, sampler statistics, cost, checks and what they mean in words.

    Raises
    ------
    TypeError
        If `posterior` is no `DataTree`, and ArviZ cannot make it one.
    ValueError
        If it has no group `posterior`, fewer than 4 draws a chain or no draw that is finite, if
        `var_names` asks for what is not there, or a threshold makes no sense.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Rank-normalization, folding, and
    localization: an improved R-hat, Bayesian Analysis 16(2). Betancourt 2016, Diagnosing suboptimal
    cotangent disintegrations in Hamiltonian Monte Carlo (E-BFMI).
    """
    limits = Limits(rhat_max, ess_threshold, bfmi_threshold)
    view = as_view(posterior)
    draws = _defined(view, var_names)
    table, still = tabulate(draws)
    if view.is_variational:  # draws of one approximation agree, however far off it is
        table["rhat"] = NAN
    diagnosis = _assemble(view, draws, table, still, limits)
    checks = judge(diagnosis)
    return replace(diagnosis, checks=checks, warnings=warn(checks), notes=note(diagnosis, checks))


def _defined(view: View, var_names: str | Sequence[str] | None) -> Draws:
    """Lay variables out, with what is finite in some draws only, unless nothing is finite in any draw."""
    draws = view.draws(var_names, finite=False)
    return draws if draws.names else view.draws(var_names)


def _assemble(
    view: View, draws: Draws, table: pd.DataFrame, still: tuple[str, ...], limits: Limits
) -> Diagnosis:
    sampler = None if view.is_variational else sampler_summary(view, draws)
    ess_bulk = Extreme.of(table["ess_bulk"], smallest=True)
    return Diagnosis(
        target=str(view.attribute(schema.TARGET, "")),
        engine=str(view.attribute(schema.ENGINE, "")),
        method=str(view.attribute(schema.METHOD, "")),
        num_chains=draws.num_chains,
        num_draws=draws.num_draws,
        parameters=table,
        rhat=Extreme.of(table["rhat"]),
        ess_bulk=ess_bulk,
        ess_tail=Extreme.of(table["ess_tail"], smallest=True),
        constants=still,
        undefined=draws.undefined,
        broken=draws.broken,
        kinds=view.kinds,
        sampler=sampler,
        variational=variational_summary(view) if view.is_variational else None,
        ess_per_second=_ratio(ess_bulk.value, sampler.sampling_seconds if sampler else None),
        ess_per_gradient=_ratio(ess_bulk.value, sampler.gradient_evaluations if sampler else None),
        wall_time=NAN if (seconds := view.number(schema.WALL_TIME)) is None else seconds,
        symmetric=view.declares_equal_modes,
        symmetry_caveat="" if schema.ALIGNMENT in view.tree.attrs else resolve(view).caveat,
        has_chains=sampler is not None and not view.is_ensemble,
        limits=limits,
    )


def _ratio(value: float, cost: float | None) -> float:
    return value / cost if cost else NAN
