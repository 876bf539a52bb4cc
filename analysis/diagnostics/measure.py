"""Measurements of a posterior: convergence, effective sample size, sampler statistics and cost.

A Markov chain is judged by R-hat, ESS, divergences, tree depths and E-BFMI, a variational fit by Pareto k-hat and
ELBO. The tree shows which of the two it is. All numbers equal those of arviz_stats. A number that is missing or not
finite passes no check. `analysis.summaries.summary` chooses the variables that decide the verdict. Entries that never
vary or are never finite do not decide. A single chain is judged by the R-hat of its halves. Chains and indices count
from 0. A quantity that was not recorded or does not apply is None or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from onebasin.base.table import decimals_beside, format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws, entry_names, variable_of
from onebasin.posteriors.pareto import tails_of
from onebasin.posteriors.view import Kinds, Posterior, View, as_view

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
from ..summaries.summary import (
    Recurring,
    bulk_ess,
    deciding,
    looked_at,
    recurring,
    rhat_of_entries,
    tabulate,
)
from ..summaries.variational import VariationalSummary, variational_summary
from .verdict import Extreme, Limits, Outcome, worst_of

DECIMALS = {"rhat": 3, "ess_bulk": 0, "ess_tail": 0}
"""Number of decimals in the table columns that are judged."""
NO_MEAN, NO_SD = 0.7, 1.0
"""k-hat of |x - m| above which draws do not determine the mean, and k-hat of its square for the standard deviation."""
_OF_RUN = ("target", "engine", "method", "num_chains", "num_draws")
_OF_SAMPLER = (
    *("divergences", "divergence_share", "mean_tree_depth", "deepest_tree"),
    *("reached_max_treedepth", "min_bfmi", "acceptance_rate", "lp_rhat"),
)


@dataclass(frozen=True, eq=False)
class Numbers:
    """A table of parameters with the outcome of each number."""

    table: pd.DataFrame  # One row per parameter, with `rhat`, `ess_bulk` and `ess_tail`.
    limits: Limits
    chains: int
    deciding: frozenset[str]  # Entries that decide; others give at most a warning.
    kinds: Mapping[str, str]  # Kinds of variables.
    others_decide: bool = False  # Whether quantities outside the table decide.

    @cached_property
    def decisive(self) -> pd.DataFrame:
        """Rows of the entries that decide the verdict."""
        return self.table[self.table.index.isin(self.deciding)]

    def outcome(self, column: str, value: float, entry: str) -> Outcome:
        """Judge the ``rhat``, ``ess_bulk`` or ``ess_tail`` of an entry."""
        known = entry in self.table.index
        decides = entry in self.deciding if known else self.others_decide
        return self.limits.outcome(column, value, self.chains, decides=decides)

    def worst_outcome(self, column: str) -> Outcome:
        """Return the most serious outcome of a column."""
        rest = self.table.drop(index=self.decisive.index)
        found = (Extreme.of(t[column], smallest=column != "rhat") for t in (self.decisive, rest))
        return worst_of(
            self.outcome(column, worst.value, worst.parameter) for worst in found if worst.parameter
        )

    def limits_of(self, column: str) -> tuple[float, ...]:
        """Return the limits of a column; empty if its numbers are not judged."""
        if column == "rhat":
            return self.limits.rhat, self.limits.deciding_rhat
        return (self.limits.least_ess(self.chains),) if column in DECIMALS else ()

    def written(self, column: str, value: float) -> str:
        """Write a number with enough digits to show on which side of its limits it lies."""
        return format_number(value, decimals=self.decimals(column, value))

    def decimals(self, column: str, *values: float) -> int:
        """Return the number of decimals needed to distinguish values from the limits of their column."""
        limits, least = self.limits_of(column), DECIMALS[column]
        known = (value for value in values if not math.isnan(value))
        return max((decimals_beside(value, limits, least) for value in known), default=least)


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """The numbers of one posterior as sampled. The fields are documented in `Diagnosis`, which adds the verdict."""

    target: str
    engine: str
    method: str
    num_chains: int
    num_draws: int
    parameters: pd.DataFrame
    constants: tuple[str, ...]
    undefined: tuple[str, ...]
    broken: Mapping[str, int]
    heavy_tails: Mapping[str, tuple[float, float]]
    kinds: Kinds
    sampler: SamplerSummary | None
    variational: VariationalSummary | None
    wall_time: float
    symmetric: bool
    symmetry_caveat: str
    has_chains: bool
    angles: tuple[str, ...]
    recurring: Recurring | None
    density_heights: Heights | None
    limits: Limits
    deciding: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]

    @property
    def shown(self) -> pd.DataFrame:
        """The parameter table that is shown and judged."""
        return self.parameters

    @cached_property
    def rhat(self) -> Extreme:
        """The largest R-hat."""
        return Extreme.of(self.parameters["rhat"])

    @cached_property
    def ess_bulk(self) -> Extreme:
        """The smallest bulk ESS."""
        return Extreme.of(self.parameters["ess_bulk"], smallest=True)

    @cached_property
    def ess_tail(self) -> Extreme:
        """The smallest tail ESS."""
        return Extreme.of(self.parameters["ess_tail"], smallest=True)

    @property
    def ess_per_second(self) -> float:
        """Smallest bulk ESS per second of sampling. Seconds are summed over chains."""
        seconds = self.sampler.sampling_seconds if self.sampler else None
        return self.ess_bulk.value / seconds if seconds else NAN

    @property
    def ess_per_gradient(self) -> float:
        """Smallest bulk ESS per gradient evaluation, not counting warmup."""
        gradients = self.sampler.gradient_evaluations if self.sampler else None
        return self.ess_bulk.value / gradients if gradients else NAN

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the measured variables."""
        entries = (*self.parameters.index, *self.undefined)
        return tuple(dict.fromkeys(variable_of(entry, self.kinds.of) for entry in entries))

    @property
    def total_draws(self) -> int:
        """The number of draws in all chains."""
        return self.num_chains * self.num_draws

    @property
    def min_ess(self) -> float:
        """The smallest ESS that passes."""
        return self.limits.least_ess(self.num_chains)

    def decides(self, entry: str) -> bool:
        """Check whether the variable of an entry, such as ``mu[0]``, is used for the verdict."""
        return variable_of(entry, self.kinds.of) in self.deciding

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of `shown` with their outcomes."""
        decide = frozenset(filter(self.decides, self.shown.index))
        return Numbers(self.shown, self.limits, self.num_chains, decide, self.kinds.of)

    @cached_property
    def heights(self) -> Heights | None:
        """Mean log densities of the chains; None if there are fewer than two to compare."""
        sampler = self.sampler
        if self.density_heights or sampler is None or len(sampler.lp_errors) < 2:
            return self.density_heights
        return compare_heights(sampler.lp_means, sampler.lp_errors)

    def summary(self) -> dict[str, Any]:
        """Return the main numbers as a flat mapping, including NaN and None."""
        worst = ("rhat", "ess_bulk", "ess_tail")
        sides = {f"{w}_{side}": v for w in worst for side, v in vars(getattr(self, w)).items()}
        sampler, fit = self.sampler or SamplerSummary(), self.variational or VariationalSummary()
        return {
            **{name: getattr(self, name) for name in _OF_RUN},
            "num_parameters": len(self.parameters),
            **sides,
            **{name: getattr(sampler, name) for name in _OF_SAMPLER},
            "khat": fit.khat,
            "elbo": fit.elbo,
            "gradient_evaluations": (sampler if self.sampler else fit).gradient_evaluations,
            "sampling_seconds": sampler.sampling_seconds,
            "warmup_seconds": sampler.warmup_seconds,
            "wall_time": self.wall_time,
            "ess_per_second": self.ess_per_second,
            "ess_per_gradient": self.ess_per_gradient,
        }


def measure(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Measured:
    """Measure one posterior as sampled. Raise the same errors as `diagnose`.

    R-hat is the rank-normalised split R-hat of Vehtari et al. 2021. E-BFMI follows Betancourt 2016.
    """
    view = as_view(posterior)
    # Include variables that are finite in only some draws, unless no draw is finite at all.
    draws = view.draws(var_names, finite=False)
    draws = draws if draws.names else view.draws(var_names)
    chosen = [var_names] if isinstance(var_names, str) else var_names
    decide, left_out = deciding(view, None if chosen is None else tuple(dict.fromkeys(chosen)))
    table, still = tabulate(draws)
    recur = recurring([*looked_at(view, decide).values()])
    # ESS must not exceed the number of independent draws that the draws are worth. Adjust Monte Carlo errors to match.
    most = min(recur.worth if recur else np.inf, view.number(schema.WORTH) or np.inf)
    for column, error in (("ess_bulk", "mcse_mean"), ("ess_tail", "mcse_sd")):
        table[error] *= np.sqrt(np.maximum(table[column] / most, 1.0))
        table[column] = table[column].clip(upper=most)
    fitted = view.is_variational
    if fitted:  # Draws of an approximation always agree.
        table["rhat"] = NAN
    sampler = None if fitted else sampler_summary(view, draws)
    return Measured(
        target=str(view.attribute(schema.TARGET, "")),
        engine=str(view.attribute(schema.ENGINE, "")),
        method=str(view.attribute(schema.METHOD, "")),
        num_chains=draws.num_chains,
        num_draws=draws.num_draws,
        parameters=table,
        constants=still,
        undefined=draws.undefined,
        broken=draws.broken,
        heavy_tails={} if fitted else _heavy_tails(draws, table),
        kinds=view.kinds,
        sampler=sampler,
        variational=variational_summary(view) if fitted else None,
        wall_time=NAN if (wall := view.number(schema.WALL_TIME)) is None else wall,
        symmetric=view.declares_equal_modes,
        symmetry_caveat="" if view.is_aligned else resolve(view).caveat,
        has_chains=sampler is not None and not view.is_ensemble,
        angles=tuple(draws.circles),
        recurring=recur,
        density_heights=None if sampler is None else _density_heights(view, sampler),
        limits=limits or Limits(),
        deciding=decide,
        left_out=left_out,
    )


WIDE = 0.5
"""Ratio of the sd to the width of the 90 % interval above which tails are examined; 0.3 for a normal."""
LOOKED_AT = 50
"""Maximum number of entries whose tails are fitted."""


def _heavy_tails(draws: Draws, table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Find entries whose tails are too heavy for a mean or standard deviation, as in a Cauchy distribution.

    R-hat and ESS use ranks, so they cannot show this. Return k-hat of |x - m| and of (x - m)^2 by entry.
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
"""Number of draws per chain, at least, for which densities are compared."""


def _density_heights(view: View, sampler: SamplerSummary) -> Heights | None:
    """If `lp` differs between chains, compare the density of the parameters, where available."""
    lp = compare_heights(sampler.lp_means, sampler.lp_errors) if sampler.lp_errors else None
    if view.log_density is None or lp is None or not lp.unlike:
        return None
    every = slice(None, None, max(1, view.num_draws // _COMPARED))
    draws = view.posterior[list(view.kinds.named("parameter"))].isel(draw=every)
    try:
        values = np.asarray(view.log_density(draws), np.float64)
    except Exception:  # On any error, compare `lp` instead.
        return None
    if not np.isfinite(values).all():
        return None
    return compare_heights(tuple(values.mean(axis=1).tolist()), tuple(mean_errors(values).tolist()))


Values = Mapping[str, Float[np.ndarray, "chain draw *event"]]


@dataclass(frozen=True, eq=False)
class Facts:
    """The variables that decide the verdict on a posterior, with numbers for their entries."""

    view: View
    raw: Measured
    values: Values  # Values that are not finite are 0.
    names: Mapping[str, tuple[str, ...]]  # Names of entries.
    table: pd.DataFrame  # By entry: `rhat`, `ess_bulk`, and `variable`.

    @cached_property
    def moved_steps(self) -> Bool[np.ndarray, "chain step"]:
        """Mask of the steps between draws at which any entry moved."""
        flat = (v.reshape(*v.shape[:2], -1) for v in self.values.values())
        steps = [(v[:, 1:] != v[:, :-1]).any(axis=2) for v in flat]
        return np.any(steps, axis=0)

    @cached_property
    def rhat_limit(self) -> float:
        """R-hat above which use is forbidden."""
        return self.raw.limits.deciding_rhat

    @cached_property
    def bad_rhat(self) -> pd.DataFrame:
        """Entries whose R-hat is above the limit."""
        return self.table[self.table["rhat"] > self.rhat_limit]

    @cached_property
    def integers_apart(self) -> pd.DataFrame:
        """Rows of scalar integers, such as changepoints, on which chains disagree.

        Arrays of integers are left out because they may be allocations, and computed integers because parameters
        determine them.
        """
        table, kinds = self.raw.parameters, self.raw.kinds
        names = [name for name in self.raw.left_out.get("integer", ()) if name in table.index]
        own = [n for n in names if n in kinds.guessed or kinds.of[n] == "parameter"]
        return table.loc[own][table.loc[own, "rhat"] > self.rhat_limit]

    @cached_property
    def bad(self) -> pd.DataFrame:
        """Entries whose R-hat or bulk ESS is beyond its limit."""
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
        """R-hat and bulk ESS of the log density; NaN if it was not recorded."""
        sampler, lp = self.raw.sampler, recorded(self.view, schema.LP)
        if sampler is None or lp is None:
            return NAN, NAN
        alone = self.raw.num_chains == 1
        rhat = float(rhat_of_entries(lp[..., None])[0]) if alone else sampler.lp_rhat
        return rhat, sampler.lp_ess

    @property
    def chains_agree(self) -> bool:
        """Check whether every R-hat, including that of the log density, is within the limit."""
        return self.bad_rhat.empty and not self.lp_numbers[0] > self.rhat_limit

    @property
    def worst(self) -> tuple[float, str]:
        """The largest R-hat and its name, including the log density."""
        worst, lp = self.worst_rhat, self.lp_numbers[0]
        if lp > worst.value or math.isnan(worst.value):
            return lp, "lp"
        return worst.value, str(worst.parameter)

    @property
    def lp_is_bad(self) -> bool:
        """Check whether the log density's R-hat or ESS is beyond its limit. Unknown values are not."""
        rhat, ess = self.lp_numbers
        return rhat > self.rhat_limit or ess < self.raw.min_ess

    @cached_property
    def diverging(self) -> Bool[np.ndarray, "chain draw"] | None:
        """Mask of divergent draws in `values`; None if divergences were not recorded."""
        diverging = recorded(self.view, schema.DIVERGING)
        return None if diverging is None else diverging[:, :: self.step] > 0

    @property
    def step(self) -> int:
        """Thinning of the draws in `values`: 1 for every draw, 2 for every second draw."""
        kept = next(iter(self.values.values())).shape[1] if self.values else self.raw.num_draws
        return -(-self.raw.num_draws // max(kept, 1))

    def columns(self, entries: Sequence[str]) -> Float[np.ndarray, "chain draw param"]:
        """Stack the draws of some entries along the last axis."""
        wanted = set(entries)
        found = {
            entry: drawn.reshape(*drawn.shape[:2], -1)[..., place]
            for name, drawn in self.values.items()
            for place, entry in enumerate(self.names[name])
            if entry in wanted
        }
        return np.stack([found[entry] for entry in entries], axis=-1)

    def moved(self, values: Values) -> Facts:
        """Return the facts with the draws of some variables replaced by moved ones."""
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


def gather(view: View, raw: Measured) -> Facts:
    """Gather the variables that decide the verdict, with numbers for their entries."""
    values = looked_at(view, raw.deciding)
    if raw.undefined or raw.broken:
        values = {name: np.where(np.isfinite(v), v, 0.0) for name, v in values.items()}
    names = {name: tuple(entry_names(view.arrays[name])) for name in raw.deciding}
    still = {*raw.constants}
    # If an entry varies only by rounding error, set it to its first draw.
    for name in (name for name in values if not still.isdisjoint(names[name])):
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
