"""Statistics recorded by a run: divergences, trees, energy, acceptance, cost and modes.

Names and units follow docs/reference/posterior.md (seconds; a gradient evaluation is a leapfrog step of a kept draw). A
statistic that was not recorded, or is NaN in every draw, is None or NaN, never zero. Values that are not finite are
counted separately and left out of other counts and of tree depths. The height of a chain is its mean log density in
nats. Two heights differ if their difference exceeds both their Monte Carlo errors and one nat, because in long chains
even a tenth of a nat is significant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import View

from .summary import bulk_ess, rhats

NAN = math.nan
SAME = 0.01
"""Largest difference of equal starts, in standard deviations, which allows for the tolerance of an optimiser."""
ERRORS = 4.5
"""Number of Monte Carlo errors above which heights differ. Errors from an ESS of 30 are uncertain, so it is large."""
NATS = 1.0
"""Difference in nats above which heights differ."""
JUDGED = (schema.LP, schema.ENERGY, schema.DIVERGING, schema.TREE_DEPTH)
"""Statistics for which values that are not finite are counted."""


@dataclass(frozen=True)
class Distance:
    """Bounds on the violation of an identity by the draws, over all coordinates of the unconstrained space."""

    coordinate: str  # Coordinate with the largest certain violation.
    least: float  # The largest certain violation.
    most: float  # The largest possible violation.


@dataclass(frozen=True)
class BiasBounds:
    """Bounds on the bias of the draws, from gradients of the log density (`inference/microcanonical/dynamics.py`)."""

    shift: Distance  # Of means, in conditional standard deviations.
    spread: Distance  # Of variances, as relative errors.


@dataclass(frozen=True)
class SamplerSummary:
    """Statistics of a Markov chain sampler.

    Attributes
    ----------
    divergences, divergences_per_chain : int or None, tuple of int
        Number of divergent transitions among the kept draws, in total and per chain.
    divergence_share : float
        The total as a share of all draws.
    mean_tree_depth : float
        Mean tree depth of NUTS.
    deepest_tree, max_tree_depth : int or None
        Depth of the deepest tree, and the limit.
    reached_max_treedepth, reached_max_treedepth_share : int or None, float
        Number of draws whose tree reached that limit, and their share.
    bfmi : tuple of float
        E-BFMI of each chain.
    acceptance_rate, acceptance_per_chain : float, tuple of float
        Mean acceptance statistic, overall and per chain.
    step_size : tuple of float
        Step size of each chain at its last draw.
    lp_means, lp_errors, lp_rhat, lp_ess : tuple of float, tuple of float, float, float
        Mean log density of each chain and its Monte Carlo error, in nats; R-hat and bulk ESS of the log density.
    stuck_chains : tuple of int
        Chains (counted from 0) whose draws and log density (or energy, if there is no `lp`) never changed.
    sampled : bool
        False if draws vary although log density and energy never do.
    not_finite : dict of str to tuple of int
        Number of values that are not finite, by statistic and chain.
    energy_variance : float
        Mean squared energy error per step and parameter of unadjusted microcanonical dynamics; otherwise NaN.
    identities : BiasBounds or None
        Bounds on the bias of unadjusted microcanonical dynamics.
    gradient_evaluations : int or None
        Number of leapfrog steps of the kept draws.
    sampling_seconds, warmup_seconds : float
        Time in seconds, summed over chains.
    restarts : tuple of tuple of int
        The draws of each chain, counted from 0, at which a new random stream began; empty if there are none.
    identical_starts : bool
        Whether several chains are known to have started at the same point.
    """

    divergences: int | None = None
    divergences_per_chain: tuple[int, ...] = ()
    divergence_share: float = NAN
    mean_tree_depth: float = NAN
    deepest_tree: int | None = None
    max_tree_depth: int | None = None
    reached_max_treedepth: int | None = None
    reached_max_treedepth_share: float = NAN
    bfmi: tuple[float, ...] = ()
    acceptance_rate: float = NAN
    acceptance_per_chain: tuple[float, ...] = ()
    step_size: tuple[float, ...] = ()
    lp_means: tuple[float, ...] = ()
    lp_errors: tuple[float, ...] = ()
    lp_rhat: float = NAN
    lp_ess: float = NAN
    stuck_chains: tuple[int, ...] = ()
    sampled: bool = True
    not_finite: dict[str, tuple[int, ...]] = field(default_factory=dict)
    energy_variance: float = NAN
    identities: BiasBounds | None = None
    gradient_evaluations: int | None = None
    sampling_seconds: float = NAN
    warmup_seconds: float = NAN
    restarts: tuple[tuple[int, ...], ...] = ()
    identical_starts: bool = False

    @property
    def min_bfmi(self) -> float:
        """Smallest E-BFMI; NaN if it is unknown for some chain."""
        return float(np.min(self.bfmi)) if self.bfmi else NAN


def sampler_summary(view: View, draws: Draws) -> SamplerSummary:
    """Summarise the group `sample_stats` and the cost attributes of an MCMC posterior."""
    found: dict[str, Any] = {**_trees(view), **_movement(view, draws), "not_finite": {}}
    for name in JUDGED:
        values = recorded(view, name)
        bad = () if values is None else (~np.isfinite(values)).sum(axis=1)
        if sum(bad):
            found["not_finite"][name] = tuple(int(count) for count in bad)
    if (values := recorded(view, schema.DIVERGING)) is not None:
        diverging = values > 0  # NaN is not a divergence.
        found["divergences_per_chain"] = tuple(int(count) for count in diverging.sum(axis=1))
        found["divergences"] = sum(found["divergences_per_chain"])
        found["divergence_share"] = float(diverging.mean())
    if (energy := recorded(view, schema.ENERGY)) is not None:
        found["bfmi"] = energy_bfmi(energy)
    if (lp := recorded(view, schema.LP)) is not None:
        with np.errstate(invalid="ignore"):  # A chain may have both infinities.
            found["lp_means"] = _floats(lp.mean(axis=1))
        found["lp_rhat"] = float(rhats(lp[..., None])[0])
        found["lp_errors"] = _floats(mean_errors(lp)) if np.isfinite(lp).all() else ()
        found["lp_ess"] = float(bulk_ess(lp[..., None])[0])
    if (acceptance := recorded(view, schema.ACCEPTANCE_RATE)) is not None:
        found["acceptance_rate"] = float(acceptance.mean())
        found["acceptance_per_chain"] = _floats(acceptance.mean(axis=1))
    if (errors := recorded(view, schema.ENERGY_VARIANCE)) is not None:
        found["energy_variance"] = float(errors.mean())
    if (step_size := recorded(view, schema.STEP_SIZE)) is not None:
        found["step_size"] = _floats(step_size[:, -1])
    gradients, steps = view.number(schema.GRADIENT_EVALUATIONS), view.stat(schema.N_STEPS)
    if gradients is None and steps is not None and np.isfinite(steps).all():
        gradients = steps.sum()
    return SamplerSummary(
        **found,
        identities=view.parsed(schema.STEIN_IDENTITIES, BiasBounds),
        gradient_evaluations=None if gradients is None else int(gradients),
        sampling_seconds=_seconds(view, schema.SAMPLING_SECONDS),
        warmup_seconds=_seconds(view, schema.WARMUP_SECONDS),
        restarts=restarts_of(view),
        identical_starts=starts_are_identical(view),
    )


def restarts_of(view: View) -> tuple[tuple[int, ...], ...]:
    """Return the draws of each chain at which a new random stream began, or () if not recorded."""
    return tuple(tuple(map(int, draws)) for draws in view.parsed(schema.RESTARTS) or ())


def starts_are_identical(view: View) -> bool:
    """Check whether there are several chains with the same recorded start."""
    starts = view.group(schema.STARTS)
    if starts is None or starts.sizes.get("chain", 1) < 2:
        return False
    for name, values in starts.data_vars.items():
        first = values.transpose("chain", ...).values
        scale = view.values(str(name)).std(axis=(0, 1)) if name in view.variables else 0.0
        if (np.abs(first - first[:1]) > SAME * scale).any():
            return False
    return True


def restarts_in_words(restarts: tuple[tuple[int, ...], ...]) -> str:
    """Name the chains that continued with a new random stream, and after how many draws. Return "" if none did."""
    return ", ".join(
        f"chain {number} after {' and '.join(f'{draw:,}' for draw in draws)} draws"
        for number, draws in enumerate(restarts)
        if draws
    )


def recorded(view: View, name: str) -> Float[np.ndarray, "chain draw"] | None:
    """Return a statistic, or None if it is missing or NaN in every draw."""
    values = view.stat(name)
    return None if values is None or np.isnan(values).all() else values


def _trees(view: View) -> dict:
    depth, limit = recorded(view, schema.TREE_DEPTH), view.number(schema.MAX_TREE_DEPTH)
    reached, trees = recorded(view, schema.REACHED_MAX_TREEDEPTH), {}
    known = np.empty(0) if depth is None else depth[np.isfinite(depth)]
    if known.size:
        trees = {"mean_tree_depth": float(known.mean()), "deepest_tree": int(known.max())}
    if depth is not None and limit is not None:
        reached = depth >= limit
        trees["max_tree_depth"] = int(limit)
    if reached is None:
        return trees
    return trees | {
        "reached_max_treedepth": int((reached > 0).sum()),
        "reached_max_treedepth_share": float((reached > 0).mean()),
    }


def mean_errors(values: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, " chain"]:
    """Return the Monte Carlo error of each chain's mean, which is 0 if the chain never varies."""
    ess = bulk_ess(values.T[None])
    return np.nan_to_num(values.std(axis=1, ddof=1) / np.sqrt(ess), nan=0.0)


@dataclass(frozen=True)
class Heights:
    """Mean log densities by chain with their errors, and the pair of chains that differs most clearly."""

    means: tuple[float, ...]
    errors: tuple[float, ...]
    lowest: int = 0
    highest: int = 0
    unlike: bool = False  # Whether the pair differs.

    @property
    def gap(self) -> tuple[float, float]:
        """The difference between the two chains and its Monte Carlo error."""
        low, high = self.lowest, self.highest
        error = float(np.hypot(self.errors[low], self.errors[high]))
        return self.means[high] - self.means[low], error

    @property
    def gap_is_seen(self) -> bool:
        """Check whether the highest and lowest heights differ by more than their errors."""
        both = math.sqrt(2) * max(self.errors)
        return max(self.means) - min(self.means) > ERRORS * both

    def apart(self, than: str = "below") -> str:
        """Describe the difference between the two chains, with its error."""
        gap, error = self.gap
        return f"chain {self.lowest} lies {gap:.3g} ± {error:.1g} nats {than} chain {self.highest}"


def compare_heights(means: Sequence[float], errors: Sequence[float]) -> Heights:
    """Compare the chains' mean log densities, relative to their Monte Carlo errors."""
    mean, error = np.asarray(means, np.float64), np.asarray(errors, np.float64)
    apart = mean[:, None] - mean[None, :]
    both = np.hypot(error[:, None], error[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((apart > NATS) & (apart > ERRORS * both), apart / both, -1.0)
    highest, lowest = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    unlike = bool(ratio.max() > 0)
    return Heights(tuple(means), tuple(errors), int(lowest), int(highest), unlike)


def _movement(view: View, draws: Draws) -> dict:
    """Find chains that never move, and check whether anything was sampled at all."""
    energy, lp = recorded(view, schema.ENERGY), recorded(view, schema.LP)
    height = lp if lp is not None else energy
    if height is None or height.shape[1] < 2:
        return {}
    level = (height == height[:, :1]).all(axis=1)
    if not level.any():
        return {}
    moves = np.zeros(draws.num_chains, bool)
    for values in draws.blocks():
        moves |= (values != values[:, :1]).any(axis=(1, 2))
    still = level & ~moves
    flat = all(s is None or (s == s.flat[0]).all() for s in (lp, energy))
    return {
        "stuck_chains": tuple(np.flatnonzero(still).tolist()),
        "sampled": not (flat and moves.any()),
    }


def _seconds(view: View, name: str) -> float:
    seconds = view.parsed(name)
    return NAN if seconds is None else float(np.sum(seconds, dtype=np.float64))


def _floats(values: Float[np.ndarray, " chain"]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def energy_bfmi(energy: Float[np.ndarray, "chain draw"]) -> tuple[float, ...]:
    """Return the E-BFMI of each chain (Betancourt 2016, arXiv:1604.00695), NaN if the chain never moves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.square(np.diff(energy, axis=1)).mean(axis=1)
        return _floats(changes / energy.var(axis=1, ddof=1))


MATTERS = 0.01
"""Upper end of the interval of a mode's weight above which the mode's chains must agree."""
APART = 1.05
"""R-hat within a mode above which its chains disagree."""
LISTED = 4
"""Maximum number of modes whose weights a sentence lists."""
NEGLIGIBLE = 0.01
"""Total weight of all modes except the first, below which they are negligible."""


@dataclass(frozen=True, eq=False)
class ModesSummary:
    """The contents of the group `modes`, whose columns are described in docs/reference/posterior.md."""

    table: xr.Dataset  # One row per mode, the heaviest first.
    known: bool  # Whether the weights are known.
    starts: int  # Number of random starts.
    unseen: float  # Probability that another start leads to a new mode.
    not_sampled: int  # Number of modes that were found but not sampled.
    nearest_not_sampled: float  # Nats by which the highest of these is below the highest mode.

    @property
    def count(self) -> int:
        """Number of sampled modes."""
        return int(self.table.sizes["mode"])

    @property
    def sentence(self) -> str:
        """A sentence on the modes and their weights."""
        if self.count == 1:
            if not self.not_sampled:
                return f"All of {self.starts} starts led to one mode."
            return (
                f"One of {1 + self.not_sampled} modes that {self.starts} starts led to was sampled."
            )
        settled = f"Chains settled in {self.count} different modes"
        if not self.known:
            return f"{settled}, and their weights are not known."
        decided = 1 - self._column("weight_low")[0] < NEGLIGIBLE
        weights = [self._weight(k, interval=not decided) for k in range(min(self.count, LISTED))]
        more = f" and {self.count - LISTED} smaller ones" if self.count > LISTED else ""
        listed = f"{', '.join(weights[:-1])} and {weights[-1]}" if not more else ", ".join(weights)
        end = "the first holds everything" if decided else "the draws are weighted by them"
        return f"{settled}; their weights are {listed}{more}: {end}."

    @property
    def remark(self) -> str:
        """A sentence on modes that may have been missed, or "" if there is no sign of them."""
        if not self.unseen:
            return ""
        return (
            f"Some modes were reached by only one of {self.starts} starts: another start leads to a new mode with "
            f"probability {self.unseen:.2g}."
        )

    @property
    def doubt(self) -> str:
        """A sentence on why the weights cannot be used, or "" if they can."""
        if not self.known:
            return self._unknown()
        rhat, high = self._column("rhat"), self._column("weight_high")
        apart = [k for k in range(self.count) if high[k] >= MATTERS and rhat[k] > APART]
        if apart:
            worst = max(apart, key=lambda k: rhat[k])
            return f"Chains of mode {worst} disagree with each other (R-hat {rhat[worst]:.2f})."
        return ""

    def _unknown(self) -> str:
        if self.nearest_not_sampled <= 10:
            return (
                f"The weights of modes are not known: {self.not_sampled} more were found than sampled, the highest "
                f"{self.nearest_not_sampled:.1f} nats below the highest of all."
            )
        value, error = self._column("log_evidence"), self._column("log_evidence_error")
        unsure = np.where(np.isfinite(error), error, np.inf)
        other = int(np.argmax(unsure[1:])) + 1 if self.count > 1 else 0
        gap, both = value[0] - value[other], float(np.hypot(error[0], error[other]))
        if not other or not math.isfinite(gap) or not math.isfinite(both):
            return "The weights of modes are not known: bridge sampling gives no estimate for one of them."
        return f"The weights of modes are not known: mode {other} lies {gap:.1f} ± {both:.1f} nats below mode 0."

    def _weight(self, mode: int, *, interval: bool) -> str:
        log_weight = float(self._column("log_weight")[mode])
        if not interval:
            return share(log_weight)
        low, high = (float(self._column(f"weight_{end}")[mode]) for end in ("low", "high"))
        return f"{math.exp(log_weight):.3g} ({low:.3g} to {high:.3g})"

    def _column(self, name: str) -> np.ndarray:
        return np.asarray(self.table[name].values, np.float64)


def modes_of(view: View) -> ModesSummary | None:
    """Read the modes of a posterior. Return None if there is no group `modes`."""
    table = view.group(schema.MODES)
    if table is None or "mode" not in table.sizes or "log_weight" not in table:
        return None
    said = table.attrs
    return ModesSummary(
        table,
        bool(said.get("known", 0)),
        int(said.get("starts", 0)),
        float(said.get("unseen", 0.0)),
        int(said.get("not_sampled", 0)),
        float(said.get("nearest_not_sampled", math.nan)),
    )


def share(log_weight: float) -> str:
    """Write a weight with two digits, even if it is tiny."""
    if log_weight > math.log(0.995):
        return "1"
    if log_weight > -700:
        return f"{math.exp(log_weight):.2g}"
    return f"1e{log_weight / math.log(10):.0f}"
