"""What a sampler recorded about itself: divergences, trees, energy, acceptance, cost.

Convention: names and units of docs/architecture.md (seconds; a gradient evaluation is a leapfrog
step of a kept draw). What was not recorded is None or NaN, never zero.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from .summary import rhat_of
from .view import get_group, json_attribute

NAN = float("nan")


@dataclass(frozen=True)
class SamplerSummary:
    """How a Markov chain sampler fared.

    Attributes
    ----------
    divergences, divergences_per_chain, divergence_share
        Divergent transitions among the kept draws: count, count per chain, share of all draws.
    mean_tree_depth, deepest_tree, max_tree_depth, saturated, saturated_share
        NUTS trees: mean depth, deepest one seen, the limit that was set, and the draws whose tree
        reached that limit.
    bfmi
        E-BFMI of each chain.
    acceptance_rate, acceptance_per_chain
        Mean acceptance statistic.
    step_size
        Step size of each chain at its last draw.
    lp_means, lp_rhat
        Mean log density of each chain, and R-hat of the log density.
    stuck_chains
        Chains (counted from 0) whose log density, or failing that energy, never changed.
    gradient_evaluations
        Leapfrog steps of the kept draws.
    sampling_seconds, warmup_seconds
        Seconds, summed over chains.
    """

    divergences: int | None = None
    divergences_per_chain: tuple[int, ...] = ()
    divergence_share: float = NAN
    mean_tree_depth: float = NAN
    deepest_tree: int | None = None
    max_tree_depth: int | None = None
    saturated: int | None = None
    saturated_share: float = NAN
    bfmi: tuple[float, ...] = ()
    acceptance_rate: float = NAN
    acceptance_per_chain: tuple[float, ...] = ()
    step_size: tuple[float, ...] = ()
    lp_means: tuple[float, ...] = ()
    lp_rhat: float = NAN
    stuck_chains: tuple[int, ...] = ()
    gradient_evaluations: int | None = None
    sampling_seconds: float = NAN
    warmup_seconds: float = NAN


def summarise_sampler(tree: xr.DataTree) -> SamplerSummary:
    """Read the group `sample_stats` and the cost attributes of a posterior made by MCMC."""
    stats = get_group(tree, "sample_stats")
    recorded = stats if stats is not None else xr.Dataset()
    limit = tree.attrs.get("max_tree_depth")
    return SamplerSummary(
        **_divergences(recorded),
        **_trees(recorded, None if limit is None else int(limit)),
        **_movement(recorded),
        gradient_evaluations=_gradient_evaluations(recorded, tree),
        sampling_seconds=_seconds(tree, "sampling_seconds"),
        warmup_seconds=_seconds(tree, "warmup_seconds"),
    )


def chain_values(stats: xr.Dataset, name: str) -> Float[np.ndarray, "chain draw"] | None:
    """Return one statistic as (chain, draw) in float64, or None where it was not recorded."""
    if name not in stats:
        return None
    return np.asarray(stats[name].transpose("chain", "draw").values, dtype=np.float64)


def _divergences(stats: xr.Dataset) -> dict:
    diverging = chain_values(stats, "diverging")
    if diverging is None:
        return {}
    per_chain = tuple(int(count) for count in diverging.sum(axis=1))
    return {
        "divergences": sum(per_chain),
        "divergences_per_chain": per_chain,
        "divergence_share": float(diverging.mean()),
    }


def _trees(stats: xr.Dataset, limit: int | None) -> dict:
    depth = chain_values(stats, "tree_depth")
    if depth is None:
        return {}
    trees = {"mean_tree_depth": float(depth.mean()), "deepest_tree": int(depth.max())}
    if limit is None:
        return trees
    saturated = depth >= limit
    return trees | {
        "max_tree_depth": limit,
        "saturated": int(saturated.sum()),
        "saturated_share": float(saturated.mean()),
    }


def _movement(stats: xr.Dataset) -> dict:
    movement: dict = {}
    energy, lp = chain_values(stats, "energy"), chain_values(stats, "lp")
    if energy is not None:
        movement["bfmi"] = _bfmi(energy)
    if (acceptance := chain_values(stats, "acceptance_rate")) is not None:
        movement["acceptance_rate"] = float(acceptance.mean())
        movement["acceptance_per_chain"] = _floats(acceptance.mean(axis=1))
    if (step_size := chain_values(stats, "step_size")) is not None:
        movement["step_size"] = _floats(step_size[:, -1])
    if lp is not None:
        movement["lp_means"] = _floats(lp.mean(axis=1))
        movement["lp_rhat"] = rhat_of(lp) if np.isfinite(lp).all() else NAN
    height = lp if lp is not None else energy
    if height is not None and height.shape[1] > 1:
        movement["stuck_chains"] = tuple(np.flatnonzero(np.ptp(height, axis=1) == 0).tolist())
    return movement


def _bfmi(energy: Float[np.ndarray, "chain draw"]) -> tuple[float, ...]:
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):  # a chain that stands still: 0 / 0
        return _floats(array_stats.bfmi(energy))


def _gradient_evaluations(stats: xr.Dataset, tree: xr.DataTree) -> int | None:
    if (recorded := tree.attrs.get("gradient_evaluations")) is not None:
        return int(recorded)
    steps = chain_values(stats, "n_steps")
    return None if steps is None else int(steps.sum())


def _seconds(tree: xr.DataTree, name: str) -> float:
    seconds = json_attribute(tree, name)
    return NAN if seconds is None else float(np.sum(seconds, dtype=np.float64))


def _floats(values: Float[np.ndarray, " chain"]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
