"""Label changes within chains, the gain of alignment compared with its gain on noise, and chains with one labelling.

Alignment brings any draws closer, even noise. For comparison, the same alignment is applied to draws whose components
were shuffled independently. Every component of such a draw comes from a real draw, but no two belong together, and no
component has a place. Shuffling cannot change a whole variable that changes sign or becomes its complement, so such a
variable is compared with Gaussian noise of the same second moments. Distances are computed from features (variables
divided by their scales, without scalings) and summed over variables.

Independent chains choose each of G equal modes with equal probability, so C chains choose the same mode with
probability G^(1 - C). If they did although this probability is small, something fixed the labels, or the components are
not interchangeable.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Num

from onebasin.models.symmetry.blocks import (
    Block,
    Group,
    Rotation,
    Symmetry,
    axes_of,
    blocks_of,
    equal_modes,
    variables_of,
)
from onebasin.models.symmetry.elements import Element, labels_of
from onebasin.models.symmetry.plain import plain_view
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

from ..discovery.resolve import resolve
from ..summaries.summary import every_few, power_of_two
from .align import align
from .alignment import Alignment

_MIXED = 400
"""Number of draws that are mixed to make noise, enough to reproduce their second moments."""


@dataclass(frozen=True)
class Switching:
    """Label changes in a posterior, and how much alignment reduces its variance."""

    labellings: tuple[int, ...]  # Number of distinct elements in each chain.
    ratio: float
    """Ratio of the variance of aligned draws, summed over variables, to that of draws moved by random elements."""
    noise_ratio: float | None
    """The same ratio for shuffled draws or noise, named by `yardstick`."""
    yardstick: str = "shuffled ones"
    distance: float = math.nan
    """Distance between the two closest components of the aligned draws, or between a component and its mirror image, in
    standard deviations; NaN if unknown."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return asdict(self)


def switching(alignment: Alignment, *, noise: bool = True, seed: int = 0) -> Switching:
    """Count label changes, and compare the gain of alignment with its gain on noise.

    A `ratio` close to `noise_ratio` means that draws are as far from a common mode as noise is. `noise` doubles the
    time. It needs alignment by weights, because shuffled components have no activations.
    """
    aligned, moving = _canonical(alignment)
    group = Group(moving, {name: values.shape[2:] for name, values in aligned.items()})
    rng = np.random.default_rng(seed)
    distances = [_distance(block, aligned) for block in moving]
    return Switching(
        labellings=tuple(len(np.unique(c, axis=0)) for c in _discrete(alignment.element)),
        ratio=_ratio(alignment, aligned, group, rng),
        noise_ratio=_noise_ratio(alignment, aligned, group, rng) if noise else None,
        yardstick="shuffled ones" if max(group.sizes, default=0) > 1 else "noise of the same size",
        distance=min(filter(math.isfinite, distances), default=math.nan),
    )


def _discrete(element: Element) -> Num[np.ndarray, "chain draw entry"]:
    """Concatenate the discrete labels of an element's parts."""
    arrays = [labels_of(part) for part in element]
    return np.concatenate([a.reshape(*a.shape[:2], -1) for a in arrays], axis=2)


def _canonical(alignment: Alignment) -> tuple[dict[str, np.ndarray], Symmetry]:
    """Return thinned aligned draws (chain, draw, *event) of the moved variables, and the blocks, in the plain view."""
    names = variables_of(alignment.symmetry)
    view = as_view(alignment.posterior)
    thinned = view.posterior.isel(draw=slice(None, None, every_few(view, tuple(names))))
    values = {n: thinned[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in names}
    plain = plain_view(equal_modes(alignment.symmetry), {n: v.shape[2:] for n, v in values.items()})
    stacked = plain.stack(values, 2)
    others = (block for block in alignment.symmetry if not block.keeps_density)
    return {n: stacked[n] for b in (*plain.blocks, *others) for n in b.variables}, plain.blocks


def _distance(block: Block[Any], values: dict[str, np.ndarray]) -> float:
    """Compute the distance between the two closest components of a block over all variables."""
    pairs, mirrored = [], []
    for name, places in block.axes.items():
        axes = axes_of(places)
        if len(axes) > 1:  # A component is a row and a column.
            continue
        parts = np.moveaxis(values[name], 2 + axes[0], 2)
        parts = parts.reshape(*parts.shape[:3], -1)
        # Choose a unit that keeps squares finite.
        parts = parts / power_of_two(np.abs(parts).max(initial=0.0, keepdims=True))
        mean, variance = parts.mean(axis=(0, 1)), parts.var(axis=(0, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            both = (variance[:, None] + variance) / 2
            pairs.append(np.nan_to_num((mean[:, None] - mean) ** 2 / both).sum(axis=-1))
            if name in block.flipped:
                mirrored.append(np.nan_to_num(4 * mean**2 / variance).sum(axis=-1))
    found = [sum(mirrored)] if mirrored else []
    if pairs and len(pairs[0]) > 1:
        total = np.sum(pairs, axis=0)
        found.append(total[np.triu_indices(len(total), 1)])
    return math.sqrt(np.concatenate(found).min()) if found else math.nan


class Separation(NamedTuple):
    """The two least distinct components of aligned draws; for rotating loadings, one and its mirror image."""

    left: float
    """Variance of their difference, divided by that of noise whose signs are chosen like labels in alignment."""
    first: int
    second: int  # Equal to `first` for a mirror image.
    turned: str = ""  # Name of the rotating loadings.


def least_apart(alignment: Alignment) -> Separation | None:
    """Find the two least distinct components. Return None if no block has several components or rotates.

    Alignment chooses the order of two components, or a sign, at every draw. So noise along its own mean is half-normal:
    the squared mean is 2 / pi times the mean square. For rotating loadings, all directions count.
    """
    (aligned, blocks), found = _canonical(alignment), list[Separation]()
    for block in blocks:
        turned = next((each.loadings for each in blocks_of((block,), Rotation)), "")
        rotates = bool(turned)
        own = {n: axes_of(k)[0] for n, k in block.axes.items() if len(axes_of(k)) == 1}
        own = {turned: own[turned]} if turned else own
        every = [np.moveaxis(aligned[name], 2 + axis, 0) for name, axis in own.items()]
        if not every or len(every[0]) < 2:
            continue
        flat = [each.reshape(len(each), each.shape[1] * each.shape[2], -1) for each in every]
        parts = np.concatenate([f / (np.abs(f).max() or 1) for f in flat], axis=2, dtype=float)
        parts /= np.where((sd := parts.std(axis=(0, 1))) > 0, sd, 1.0) if not rotates else 1.0
        pairs = (
            [(k, k) for k in range(len(parts))] if rotates else combinations(range(len(parts)), 2)
        )
        for first, second in pairs:
            apart = parts[first] if rotates else parts[first] - parts[second]
            square, mean = float(np.mean(apart**2)) * apart.shape[1], apart.mean(axis=0)
            # Use the direction in which two components differ most relative to their spread.
            to = mean if rotates else mean / np.maximum(apart.var(axis=0), 1e-12)
            along = np.square(apart @ to).mean() / max(float(mean @ to), 1e-300)
            share = float(mean @ (mean if rotates else to)) / (square if rotates else along)
            noise = 2 / math.pi * (along / square if rotates and square else 1.0)
            found.append(Separation((1 - share) / (1 - noise), first, second, turned))
    return max(found, default=None)


def _variance(values: dict[str, np.ndarray], scales: Any) -> float:
    return sum(float((v / scales.get(n, 1.0)).var(axis=(0, 1)).sum()) for n, v in values.items())


def _ratio(
    alignment: Alignment, aligned: dict[str, np.ndarray], group: Group, rng: np.random.Generator
) -> float:
    lead = next(iter(aligned.values())).shape[:2]
    scrambled = group.act(group.random(rng, lead), aligned)
    scales = alignment.rule.scales
    return _variance(aligned, scales) / _variance(scrambled, scales)


def _noise_ratio(
    alignment: Alignment, aligned: dict[str, np.ndarray], group: Group, rng: np.random.Generator
) -> float:
    shuffled, rule = shuffle_parts(aligned, group, rng), alignment.rule
    again = align(
        shuffled,
        group.symmetry,
        reference=rule.reference if rule.reference != "posterior" else "mean",
        scales={n: s for n, s in rule.scales.items() if n in shuffled},
        restarts=rule.restarts,
        max_sweeps=rule.max_sweeps,
        seed=rule.seed,
    )
    return _ratio(again, _canonical(again)[0], group, rng)


def shuffle_parts(
    values: dict[str, Float[np.ndarray, "chain draw *event"]],
    group: Group,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Move every component in draws (chain, draw, *event) to a random draw and place.

    A component keeps its entries in all variables of its block together. A block with one component becomes noise.
    """
    lead = next(iter(values.values())).shape[:2]
    total = lead[0] * lead[1]
    out = group.act(group.random(rng, lead), values)
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in out.items()}
    for block, size in zip(group.symmetry, group.sizes, strict=True):
        if size > 1:
            rows = rng.permuted(np.tile(np.arange(total), (size, 1)), axis=1)
            for name, places in block.axes.items():
                axis = axes_of(places)[0] + 1
                front = np.moveaxis(flat[name], axis, 0)
                mixed = [part[order] for part, order in zip(front, rows, strict=True)]
                flat[name] = np.moveaxis(np.stack(mixed), 0, axis)
        else:
            chosen = rng.choice(total, size=min(total, _MIXED), replace=False)
            mixing = rng.standard_normal((total, len(chosen))) / np.sqrt(len(chosen))
            for name in block.variables:  # Keep second moments about the fixed point.
                centre = 0.5 if name in block.complemented else 0.0
                some = flat[name][chosen].reshape(len(chosen), -1) - centre
                flat[name] = (mixing @ some + centre).reshape(flat[name].shape)
    return {n: v.reshape(*lead, *v.shape[1:]) for n, v in flat.items()}


IMPROBABLE = 0.01
"""Probability below which chance is ruled out as an explanation."""
MOST = 0.9
"""Share of a chain's draws that must have the same labelling for it to count as the chain's labelling."""


class OneLabelling(NamedTuple):
    """The finding that all chains have the same labelling, with its probability under chance and a sentence."""

    probability: float
    sentence: str

    @property
    def improbable(self) -> bool:
        """Check whether chance is ruled out as an explanation."""
        return self.probability < IMPROBABLE


def one_labelling(alignment: Alignment) -> OneLabelling | None:
    """Return a finding if all chains have the same labelling, otherwise None."""
    rows = _discrete(alignment.element)
    if alignment.rotates or not rows.size:
        return None
    middle = rows.shape[0] * rows.shape[1] // 2
    usual = np.partition(rows.reshape(-1, rows.shape[2]), middle, axis=0)[middle]
    if not ((rows == usual).all(axis=2).mean(axis=1) >= MOST).all():
        return None
    others = alignment.distance_after.shape[0] - 1
    log_order = Group(equal_modes(alignment.symmetry), alignment.group.shapes).log_order
    probability = math.exp(-others * log_order)
    if not others:
        return OneLabelling(
            probability, "The only chain has one labelling, so it cannot reveal other modes."
        )
    said = (
        f"All {others + 1} chains have the same one of {_count(log_order)} labellings, "
        f"which happens to independent starts once in {_count(others * log_order)} times: "
    )
    if probability < IMPROBABLE:
        known = resolve(alignment.source, alignment.symmetry).known
        said += "an order, equal starts or different priors fixed the labels"
        said += "." if known else ", or the components are not interchangeable."
    else:
        said += "no evidence for or against the symmetry."
    return OneLabelling(probability, said)


def _count(log_number: float) -> str:
    few = log_number < math.log(1e6)
    return f"{math.exp(log_number):.0f}" if few else f"10^{log_number / math.log(10):.0f}"
