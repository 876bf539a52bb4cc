"""How much components change places within chains, and whether alignment found more than noise has.

Alignment brings any draws closer, noise too. Its yardstick is the same alignment of draws whose components
were shuffled independently: every component of such a draw is one of some real draw, but no two belong
together, and none has a place of its own. Convention: distances are of features (variables divided by
their scales, scalings divided out), summed over variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from onebasin.models import schema
from onebasin.models.checks import check_count
from onebasin.models.symmetry.blocks import Symmetry, axes_of, equal_modes
from onebasin.models.symmetry.elements import Element, Permuted, permuted_parts
from onebasin.models.symmetry.group import Group

from ..posterior.view import as_view
from .align import align
from .result import Alignment


@dataclass(frozen=True)
class Switching:
    """What alignment did to a posterior.

    Attributes
    ----------
    reassigned : dict
        Lag to the fraction of components whose place or sign differs between draws of one chain that
        lag apart, over all chains and blocks; NaN where chains are too short.
    labellings : tuple of int
        Different elements in each chain.
    ratio : float
        Variance of the aligned draws, summed over variables, over that of the same draws under
        random elements.
    noise_ratio : float or None
        The same for draws whose components were shuffled independently.
    """

    reassigned: dict[int, float]
    labellings: tuple[int, ...]
    ratio: float
    noise_ratio: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return asdict(self)


def switching(
    alignment: Alignment,
    *,
    lags: Sequence[int] = (1, 20, 100),
    noise: bool = True,
    seed: int = 0,
) -> Switching:
    """Measure switching of labels, and what alignment gained beside what it gains on noise.

    Parameters
    ----------
    alignment : Alignment
        Of a posterior by weights.
    lags : sequence of int
        Distances between draws of one chain.
    noise : bool
        Whether to align shuffled draws too, which takes as long as the alignment did.
    seed : int
        Of random elements and shuffling.

    Returns
    -------
    Switching
        A `ratio` close to `noise_ratio` says that draws are no closer to one mode than noise is.

    Raises
    ------
    ValueError
        If a lag is not a positive whole number, or noise is asked for after an alignment by
        activations.
    """
    for lag in lags:
        check_count("lags", lag)
    if noise and alignment.rule.cost != "weights":
        raise ValueError(
            f"`noise` is true, but draws were aligned by {alignment.rule.cost}, which shuffled parts "
            "do not have; align by weights, or give noise=False."
        )
    canonical = _canonical(alignment)
    rng = np.random.default_rng(seed)
    return Switching(
        reassigned={int(lag): reassigned(alignment.element, lag) for lag in lags},
        labellings=_labellings(alignment.element),
        ratio=_ratio(alignment, canonical, rng),
        noise_ratio=_noise_ratio(alignment, canonical, rng) if noise else None,
    )


def reassigned(element: Element, lag: int) -> float:
    """Fraction of components with another place or sign `lag` draws later in the same chain."""
    changes = [_changes(part, lag) for part in permuted_parts(element)]
    flat = np.concatenate([change.ravel() for change in changes]) if changes else np.empty(0)
    return float(flat.mean()) if flat.size else float("nan")


def _changes(part: Permuted, lag: int) -> Bool[np.ndarray, "chain draw component"]:
    changed = part.permutation[:, lag:] != part.permutation[:, :-lag]
    if part.signs is not None:
        changed = changed | (part.signs[:, lag:] != part.signs[:, :-lag])
    return changed


def _labellings(element: Element) -> tuple[int, ...]:
    arrays = [a for part in element for a in part if a is not None and a.dtype.kind != "f"]
    arrays += [p.signs for p in permuted_parts(element) if p.signs is not None]
    rows = np.concatenate([a.reshape(*a.shape[:2], -1).astype(float) for a in arrays], axis=2)
    return tuple(len(np.unique(chain, axis=0)) for chain in rows)


def _canonical(alignment: Alignment) -> dict[str, np.ndarray]:
    """Aligned draws of the moved variables, in their gauge (chain, draw, *event)."""
    names = [n for block in alignment.symmetry for n in block.variables]
    dataset = as_view(alignment.posterior).posterior
    return {n: dataset[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in dict.fromkeys(names)}


def _variance(values: dict[str, np.ndarray], scales: Any) -> float:
    return sum(float((v / scales.get(n, 1.0)).var(axis=(0, 1)).sum()) for n, v in values.items())


def _ratio(alignment: Alignment, aligned: dict[str, np.ndarray], rng: np.random.Generator) -> float:
    group = Group(equal_modes(alignment.symmetry), {n: v.shape[2:] for n, v in aligned.items()})
    lead = alignment.distance_after.shape
    scrambled = group.act(group.random(rng, lead), aligned)
    scales = alignment.rule.scales
    return _variance(aligned, scales) / _variance(scrambled, scales)


def _noise_ratio(
    alignment: Alignment, aligned: dict[str, np.ndarray], rng: np.random.Generator
) -> float:
    moving = equal_modes(alignment.symmetry)
    shuffled = shuffle_parts(aligned, moving, rng)
    dataset = xr.Dataset(
        {
            n: ((*schema.SAMPLE_DIMS, *(f"{n}_{k}" for k in range(v.ndim - 2))), v)
            for n, v in shuffled.items()
        }
    )
    rule = alignment.rule
    again = align(
        dataset,
        moving,
        reference=rule.reference if rule.reference != "posterior" else "mean",
        scales={n: s for n, s in rule.scales.items() if n in dataset},
        restarts=rule.restarts,
        max_sweeps=rule.max_sweeps,
        seed=rule.seed,
    )
    return _ratio(again, _canonical(again), rng)


def shuffle_parts(
    values: dict[str, Float[np.ndarray, "chain draw *event"]],
    symmetry: Symmetry,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Give every component of every draw to a draw and a place at random.

    Parameters
    ----------
    values : mapping of str to array (chain, draw, *event)
        Draws.
    symmetry : Symmetry
        Blocks that permute; a component keeps its entries in all variables of its block together.
    rng : Generator
        Source of the shuffling.
    """
    lead = next(iter(values.values())).shape[:2]
    group = Group(symmetry, {n: v.shape[2:] for n, v in values.items()})
    out = group.act(group.random(rng, lead), values)
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in out.items()}
    for block, size in zip(symmetry, group.sizes, strict=True):
        if block.axes:
            rows = rng.permuted(np.tile(np.arange(lead[0] * lead[1]), (size, 1)), axis=1)
            for name, places in block.axes.items():
                flat[name] = _regroup(flat[name], rows, axes_of(places)[0])
    return {n: v.reshape(*lead, *v.shape[1:]) for n, v in flat.items()}


def _regroup(values: np.ndarray, rows: np.ndarray, axis: int) -> np.ndarray:
    """Take component j of each draw from the draw `rows[j]` says."""
    front = np.moveaxis(values, axis + 1, 0)
    return np.moveaxis(
        np.stack([part[order] for part, order in zip(front, rows, strict=True)]), 0, axis + 1
    )
