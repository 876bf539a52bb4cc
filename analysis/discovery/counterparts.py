"""Components that are parameters of their own, such as `mu1` and `mu2`, or `a`, `b` with `c`, `d`: where to look.

Tuples of parameters of one shape are laid side by side, as one more variable ``mu1~mu2`` whose first axis is that of
the components; the search then treats it like any other. Three components and more have names that differ in a number;
of two, every pair is looked at that may be a label's: where parameters disagree between chains their sum agrees, or
their difference has two signs and hardly a value near zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import numpy as np
from jaxtyping import Float

from .slots import Labels, Slot, Values, of_chains

MOST = 40
"""Parameters of one shape that are paired at most."""
ENTRIES = 64
"""Entries of a parameter at most, to be one of its components'."""
BOTH = 0.02
"""Share of draws in which a difference has its rarer sign, from which on it may change with labels."""
APART = 0.25
"""Variance of a difference's size over its mean square, below which it is bimodal."""

RARE = 0.01
"""Share of draws up to which a labelling does not count."""
TIED = 0.9
"""Share of the draws of a labelling that have one and the same of another: overlap makes it less than 1."""
MOSTLY = 0.7
"""Share of the draws that have their chain's labelling, from which on it is the chain's: overlap hides it in some."""

_NUMBER = re.compile(r"\d+")

Tuples = tuple[tuple[str, ...], ...]


def tuples_of(values: Values, bad: Mapping[str, np.ndarray]) -> tuple[Tuples, Tuples]:
    """Choose tuples of parameters that may be components: those from which labels are read, and others.

    `bad` marks the entries whose R-hat is bad.
    """
    shapes: dict[tuple[int, ...], list[str]] = {}
    for name, drawn in values.items():
        if drawn[0, 0].size <= ENTRIES:
            shapes.setdefault(drawn.shape[2:], []).append(name)
    first: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    for names in shapes.values():
        names = sorted(names, key=lambda name: not bad[name].any())[:MOST]
        pairs = list(combinations(sorted(names, key=list(values).index), 2))
        for a, b in pairs:
            shown = _may_switch(values[a], values[b], bool(bad[a].any() or bad[b].any()))
            (first if shown else others).append((a, b))
        first += families(names)
    return tuple(first), tuple(others)


def families(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Gather names of three components and more, which differ in their last number."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        if (last := _last_number(name)) is not None:
            common = name[: last.start()], name[last.end() :]
            found.setdefault(common, {})[int(last.group())] = name
    yield from (tuple(each[k] for k in sorted(each)) for each in found.values() if len(each) > 2)


def numbers_in(names: Iterable[str]) -> tuple[str, ...]:
    """Return the last numbers of names that differ in nothing else, such as 1 and 2; empty if they do."""
    last = {name: found for name in names if (found := _last_number(name)) is not None}
    common = {(name[: found.start()], name[found.end() :]) for name, found in last.items()}
    return tuple(found.group() for found in last.values()) if len(common) == 1 else ()


def _last_number(name: str) -> re.Match[str] | None:
    *_, last = [None, *_NUMBER.finditer(name)]
    return last


def _may_switch(
    a: Float[np.ndarray, "chain draw *event"], b: Float[np.ndarray, "chain draw *event"], bad: bool
) -> bool:
    """Tell whether two parameters may be one quantity of two components whose labels change."""
    flat = [v.reshape(*v.shape[:2], -1) for v in (a, b)]
    difference, total = flat[0] - flat[1], flat[0] + flat[1]
    below = (difference < 0).mean(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(difference).var(axis=(0, 1)) / (difference**2).mean(axis=(0, 1))
        within = [v.var(axis=1).mean(axis=0) for v in (difference, total)]
        between = [v.mean(axis=1).var(axis=0) for v in (difference, total)]
        spread = [b / w for b, w in zip(between, within, strict=True)]
    seen = np.minimum(below, 1 - below) > BOTH
    seen &= (spread[0] > 10 * spread[1]) if bad else (apart < APART)
    return bool(seen.any())


def with_tuples(values: Values, tuples: Iterable[tuple[str, ...]]) -> dict[str, np.ndarray]:
    """Add every tuple as a variable (chain, draw, component, *event)."""
    stacked = {"~".join(names): np.stack([values[n] for n in names], axis=2) for names in tuples}
    return {**values, **stacked}


def apart(slots: Iterable[Slot], moved: Values) -> dict[str, np.ndarray]:
    """Give moved variables under the names of the parameters."""
    out: dict[str, np.ndarray] = {}
    for slot in slots:
        if slot.members:
            out |= {n: moved[slot.name][:, :, place] for place, n in enumerate(slot.members)}
        else:
            out[slot.name] = moved[slot.name]
    return out


def are_tied(first: Labels, second: Labels) -> bool:
    """Tell whether two labellings determine each other in nearly all draws, or by chain if one belongs to the chain."""
    (one, alone), (other, also) = of_chains(first), of_chains(second)
    shares = (np.mean(first == one[:, None]), np.mean(second == other[:, None]))
    if (alone or also) and min(shares) > MOSTLY:
        first, second = one[:, None], other[:, None]
    pairs, counts = np.unique(np.stack([first.ravel(), second.ravel()]), axis=1, return_counts=True)
    partners: list[dict[int, int]] = []
    for own, other in (pairs, pairs[::-1]):
        sizes = {int(k): counts[own == k] for k in np.unique(own)}
        common = {k: each for k, each in sizes.items() if each.sum() > RARE * first.size}
        if len(common) < 2 or any(each.max() < TIED * each.sum() for each in common.values()):
            return False
        partners.append({k: int(other[own == k][each.argmax()]) for k, each in common.items()})
    there, back = partners
    return there == {theirs: ours for ours, theirs in back.items()}
