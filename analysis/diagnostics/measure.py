"""Measure a posterior: convergence, effective sample size, sampler health, cost; and gather what a verdict looks at.

Convention: a Markov chain is judged by R-hat, ESS, divergences, trees and E-BFMI, a variational fit by Pareto k-hat
and ELBO; which of the two it is follows from the tree alone. All estimators are arviz_stats'. What a wrong number
means and what to do about it is in the result's `warnings`, what could not be judged in its `notes`: a number that is
missing or not finite passes no check. Which variables decide is described in `analysis.summaries.summary`; their
entries that never vary or are finite in no draw do not. A single chain is judged by R-hat of its halves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws, entry_names
from onebasin.posteriors.pareto import tails_of
from onebasin.posteriors.view import Posterior, View, as_view

from ..discovery.resolve import resolve
from ..summaries.sampler import (
    NAN,
    Heights,
    SamplerSummary,
    compare_heights,
    mean_errors,
    recorded,
    sampler_summary,
)
from ..summaries.summary import bulk_ess, deciding, looked_at, recurring, rhat_of_entries, tabulate
from ..summaries.variational import variational_summary
from .checks import NO_MEAN, NO_SD
from .result import Diagnosis
from .verdict import Extreme, Limits


def measure(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Diagnosis:
    """Diagnose one posterior as its draws came, without an answer to whether it may be used.

    Errors are those of `diagnose`. R-hat is the rank-normalised split one of Vehtari et al. 2021, E-BFMI
    that of Betancourt 2016.
    """
    view = as_view(posterior)
    # What is finite in some draws only is laid out too, unless nothing is finite in any.
    draws = view.draws(var_names, finite=False)
    draws = draws if draws.names else view.draws(var_names)
    chosen = [var_names] if isinstance(var_names, str) else var_names
    decide, left_out = deciding(view, None if chosen is None else tuple(dict.fromkeys(chosen)))
    table, still = tabulate(draws)
    recur = recurring([*looked_at(view, decide).values()])
    _limit_ess(table, min(recur.worth if recur else np.inf, view.number(schema.WORTH) or np.inf))
    if view.is_variational:  # draws of one approximation agree, however far off it is
        table["rhat"] = NAN
    sampler = None if view.is_variational else sampler_summary(view, draws)
    ess = Extreme.of(table["ess_bulk"], smallest=True)
    seconds = sampler.sampling_seconds if sampler else None
    gradients = sampler.gradient_evaluations if sampler else None
    return Diagnosis(
        target=str(view.attribute(schema.TARGET, "")),
        engine=str(view.attribute(schema.ENGINE, "")),
        method=str(view.attribute(schema.METHOD, "")),
        num_chains=draws.num_chains,
        num_draws=draws.num_draws,
        parameters=table,
        constants=still,
        undefined=draws.undefined,
        broken=draws.broken,
        heavy_tails={} if view.is_variational else _heavy_tails(draws, table),
        kinds=view.kinds,
        sampler=sampler,
        variational=variational_summary(view) if view.is_variational else None,
        wall_time=NAN if (wall := view.number(schema.WALL_TIME)) is None else wall,
        symmetric=view.declares_equal_modes,
        symmetry_caveat="" if view.is_aligned else resolve(view).caveat,
        angles=tuple(draws.circles),
        recurring=recur,
        has_chains=sampler is not None and not view.is_ensemble,
        density_heights=None if sampler is None else _density_heights(view, sampler),
        limits=limits or Limits(),
        deciding=decide,
        left_out=left_out,
        rhat=Extreme.of(table["rhat"]),
        ess_bulk=ess,
        ess_tail=Extreme.of(table["ess_tail"], smallest=True),
        ess_per_second=NAN if not seconds else ess.value / seconds,
        ess_per_gradient=NAN if not gradients else ess.value / gradients,
    )


def _limit_ess(table: pd.DataFrame, most: float) -> None:
    """Let no effective sample size be larger than what draws are worth, and Monte Carlo errors follow."""
    for column, error in (("ess_bulk", "mcse_mean"), ("ess_tail", "mcse_sd")):
        table[error] *= np.sqrt(np.maximum(table[column] / most, 1.0))
        table[column] = table[column].clip(upper=most)


WIDE = 0.5
"""Standard deviations over the width of the 90 % interval above which tails are looked at; a normal's are 0.3."""
LOOKED_AT = 50
"""Entries whose tails are fitted at most."""


def _heavy_tails(draws: Draws, table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Find entries whose tails are too heavy for a mean or a standard deviation, as those of a Cauchy are.

    R-hat and ESS are of ranks, which have no tails. Given are k-hat of |x - m| and of (x - m)^2.
    """
    width = table["q95"] - table["q5"]
    wide = np.flatnonzero((width > 0) & (table["sd"] > WIDE * width))
    found = {}
    for place in map(int, wide[:LOOKED_AT]):
        column = draws.read(slice(place, place + 1)).ravel()
        even = np.zeros(len(column))
        tails = tails_of(column, even, even - np.log(len(column)))
        mean, square = float(tails.mean[0]), float(tails.square[0])
        if mean > NO_MEAN or square > NO_SD:
            found[str(table.index[place])] = mean, square
    return found


_COMPARED = 200
"""Draws of a chain, at least, at which densities are compared."""


def _density_heights(view: View, sampler: SamplerSummary) -> Heights | None:
    """Compare chains by the density of the parameters themselves, where `lp` differs and that density is available."""
    lp = compare_heights(sampler.lp_means, sampler.lp_errors) if sampler.lp_errors else None
    if view.log_density is None or lp is None or not lp.unlike:
        return None
    every = slice(None, None, max(1, view.num_draws // _COMPARED))
    draws = view.posterior[list(view.kinds.named("parameter"))].isel(draw=every)
    try:
        values = np.asarray(view.log_density(draws), np.float64)
    except Exception:  # whatever it is, `lp` is what there is
        return None
    if not np.isfinite(values).all():
        return None
    return compare_heights(tuple(values.mean(axis=1).tolist()), tuple(mean_errors(values).tolist()))


Values = Mapping[str, Float[np.ndarray, "chain draw *event"]]


@dataclass(frozen=True, eq=False)
class Facts:
    """The variables that decide about one posterior, and numbers of their entries."""

    view: View
    raw: Diagnosis
    values: Values  # in order; entries that are not finite, or broken, are 0
    names: Mapping[str, tuple[str, ...]]  # names of entries
    table: pd.DataFrame  # by entry: `rhat`, `ess_bulk`, and `variable`

    @cached_property
    def moved_steps(self) -> Bool[np.ndarray, "chain step"]:
        """At which steps from one draw to the next anything moved."""
        flat = (v.reshape(*v.shape[:2], -1) for v in self.values.values())
        steps = [(v[:, 1:] != v[:, :-1]).any(axis=2) for v in flat]
        return np.any(steps, axis=0)

    @cached_property
    def rhat_limit(self) -> float:
        """R-hat that decides."""
        return self.raw.limits.deciding_rhat

    @cached_property
    def bad_rhat(self) -> pd.DataFrame:
        """Entries whose R-hat is bad."""
        return self.table[self.table["rhat"] > self.rhat_limit]

    @cached_property
    def integers_apart(self) -> pd.DataFrame:
        """Single integers, such as changepoints, about which chains disagree, with their numbers.

        Arrays of them may be allocations, and those that a program computes follow its parameters.
        """
        table, kinds = self.raw.parameters, self.raw.kinds
        names = [name for name in self.raw.left_out.get("integer", ()) if name in table.index]
        own = [n for n in names if n in kinds.guessed or kinds.of[n] == "parameter"]
        return table.loc[own][table.loc[own, "rhat"] > self.rhat_limit]

    @cached_property
    def bad(self) -> pd.DataFrame:
        """Entries whose R-hat or bulk ESS is bad."""
        low = self.table["ess_bulk"] < self.raw.min_ess
        return self.table[(self.table["rhat"] > self.rhat_limit) | low]

    @cached_property
    def worst_rhat(self) -> Extreme:
        """The largest R-hat."""
        return Extreme.of(self.table["rhat"])

    @cached_property
    def least_ess(self) -> Extreme:
        """The smallest bulk ESS."""
        return Extreme.of(self.table["ess_bulk"], smallest=True)

    @cached_property
    def lp_numbers(self) -> tuple[float, float]:
        """R-hat and bulk ESS of the log density; NaN if there is none."""
        sampler, lp = self.raw.sampler, recorded(self.view, schema.LP)
        if sampler is None or lp is None:
            return NAN, NAN
        alone = self.raw.num_chains == 1
        rhat = float(rhat_of_entries(lp[..., None])[0]) if alone else sampler.lp_rhat
        return rhat, sampler.lp_ess

    @property
    def chains_agree(self) -> bool:
        """Check whether R-hat is good, that of the log density included."""
        return self.bad_rhat.empty and not self.lp_numbers[0] > self.rhat_limit

    @property
    def worst(self) -> tuple[float, str]:
        """The largest R-hat, that of the log density included, with its name."""
        worst, lp = self.worst_rhat, self.lp_numbers[0]
        if lp > worst.value or math.isnan(worst.value):
            return lp, "lp"
        return worst.value, str(worst.parameter)

    @property
    def lp_is_bad(self) -> bool:
        """Check whether the log density's R-hat or ESS is bad; one that is not known is not."""
        rhat, ess = self.lp_numbers
        return rhat > self.rhat_limit or ess < self.raw.min_ess

    @cached_property
    def diverging(self) -> Bool[np.ndarray, "chain draw"] | None:
        """Which draws diverged, of those in `values`; None if that was not recorded."""
        diverging = recorded(self.view, schema.DIVERGING)
        return None if diverging is None else diverging[:, :: self.step] > 0

    @property
    def step(self) -> int:
        """Every how many-th draw is in `values`."""
        kept = next(iter(self.values.values())).shape[1] if self.values else self.raw.num_draws
        return -(-self.raw.num_draws // max(kept, 1))

    def columns(self, entries: Sequence[str]) -> Float[np.ndarray, "chain draw param"]:
        """Draws of some entries side by side."""
        wanted = set(entries)
        found = {
            entry: drawn.reshape(*drawn.shape[:2], -1)[..., place]
            for name, drawn in self.values.items()
            for place, entry in enumerate(self.names[name])
            if entry in wanted
        }
        return np.stack([found[entry] for entry in entries], axis=-1)

    def moved(self, values: Values) -> Facts:
        """The same posterior with some variables' draws in other places."""
        there = {name: drawn for name, drawn in values.items() if name in self.values}
        if not there:
            return self
        table = self.table.copy()
        for name, drawn in there.items():
            flat = drawn.reshape(*drawn.shape[:2], -1)
            numbers = {"rhat": rhat_of_entries(flat), "ess_bulk": bulk_ess(flat)}
            own = pd.DataFrame(numbers, index=list(self.names[name]))
            known = table.index[table["variable"] == name]
            table.loc[known, ["rhat", "ess_bulk"]] = own.loc[known]
        return replace(self, values={**self.values, **there}, table=table)


def gather(view: View, raw: Diagnosis) -> Facts:
    """Gather what decides, of a posterior that was measured."""
    values = looked_at(view, raw.deciding)
    if raw.undefined or raw.broken:
        values = {name: np.where(np.isfinite(v), v, 0.0) for name, v in values.items()}
    names = {name: tuple(entry_names(view.arrays[name])) for name in raw.deciding}
    still = {*raw.constants}
    for name in (name for name in values if not still.isdisjoint(names[name])):  # no rounding
        kept = np.array([e not in still for e in names[name]]).reshape(values[name].shape[2:])
        values[name] = np.where(kept, values[name], values[name][:1, :1])
    variable = {entry: name for name, entries in names.items() for entry in entries}
    unknown = {*raw.constants, *raw.broken, *raw.undefined}
    entries = [entry for entry in variable if entry not in unknown]
    table = raw.parameters[["rhat", "ess_bulk"]].reindex(entries)
    table["variable"] = [variable[entry] for entry in entries]
    if raw.num_chains == 1:
        flat = ((name, drawn.reshape(*drawn.shape[:2], -1)) for name, drawn in values.items())
        halves = {e: r for n, v in flat for e, r in zip(names[n], rhat_of_entries(v), strict=True)}
        table["rhat"] = [float(halves[entry]) for entry in entries]
    return Facts(view, raw, values, names, table)
