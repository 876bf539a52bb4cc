"""Angles among draws: parameters on a circle that is cut open, whose draws meet across the cut.

Convention: a circle begins at -pi or 0 and has 2 pi, or at -180 or 0 and has 360. An angle that lies across the cut
has draws at both ends, which are neighbours: its plain mean lies on the other side of the circle. Draws that meet have
the same density on both sides of the cut; those of a parameter and its mirror image end in tails before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

CUTS = ((-np.pi, 2 * np.pi), (0.0, 2 * np.pi), (-180.0, 360.0), (0.0, 360.0))
"""Beginnings of circles, and their lengths."""
REACH = 0.02
"""Share of a circle within which draws come to both of its ends."""
NEAREST, CLOSE, LEAST = 40, 0.1, 0.1
"""Draws on each side of the cut whose distances are looked at; and of this share of all draws, those next to it, the
share that is on each side at least."""
UP_TO = 0.71
"""Mean distance of these draws, over that of the farthest: a half where the density goes on, more in a tail."""
OUTLIER, BESIDE, BEYOND = 12.0, 10, 0.4
"""Distances between neighbours, of so many draws before the cut, up to which a few draws may lie beyond it, and their
distance from it at most, over that of the others."""
MOVED = 0.2
"""Share of draws beyond the cut from which on the mean is given between -1/4 and 3/4 of a circle."""


@dataclass(frozen=True)
class Circle:
    """The circle of an angle: its length, and circular mean and circular standard deviation of the draws."""

    period: float
    mean: float
    sd: float

    def unwrapped(self, values: Float[np.ndarray, "*draws"]) -> Float[np.ndarray, "*draws"]:
        """Return angles within half a circle of the mean."""
        return values - self.period * np.rint((values - self.mean) / self.period)


def circle_of(values: Float[np.ndarray, "*draws"]) -> Circle | None:
    """Return the circle of a parameter whose draws meet across the cut of one; None of others."""
    ends = np.array([values.min()]), np.array([values.max()])
    cut = next((cut for cut in CUTS if comes_near(*ends, cut)[0]), None)
    if cut is None or not _meet(np.unique(values), *cut) or (values == np.rint(values)).all():
        return None
    first, period = cut
    unit = 2 * np.pi / period
    mean = np.exp(1j * unit * values).mean()
    centre = first + (float(np.angle(mean)) / unit - first) % period
    circle = Circle(period, centre, float(np.sqrt(-2 * np.log(abs(mean)))) / unit)
    if (circle.unwrapped(values) != values).mean() > MOVED:
        centre = (centre + period / 4) % period - period / 4
    return Circle(period, centre, circle.sd)


def unwrapped(values: Float[np.ndarray, "chain draw *event"]) -> np.ndarray:
    """Return draws with the entries that are angles within half a circle of their means."""
    flat = values.reshape(*values.shape[:2], -1)
    ends = flat.min(axis=(0, 1), initial=np.inf), flat.max(axis=(0, 1), initial=-np.inf)
    near = np.any([comes_near(*ends, cut) for cut in CUTS], axis=0)
    out = flat.copy() if near.any() else flat
    for place in np.flatnonzero(near):
        if (circle := circle_of(flat[..., place])) is not None:
            out[..., place] = circle.unwrapped(flat[..., place])
    return out.reshape(values.shape)


def comes_near(
    low: Float[np.ndarray, " entry"], high: Float[np.ndarray, " entry"], cut: tuple[float, float]
) -> Bool[np.ndarray, " entry"]:
    """Tell of which entries the smallest and the largest draws lie at both ends of a circle, and not beyond."""
    (first, period), reach, rounding = cut, REACH * cut[1], 1e-6 * cut[1]
    inside = (low >= first - rounding) & (high <= first + period + rounding)
    return inside & (low <= first + reach) & (high >= first + period - reach)


def _meet(ordered: Float[np.ndarray, " draw"], first: float, period: float) -> bool:
    """Tell whether different draws, in order, meet across the cut, by their distances from it on both sides."""
    sides = [np.abs(ordered - first), np.abs(first + period - ordered)[::-1]]
    gaps = np.diff(ordered)
    below = int(gaps.argmax()) + 1
    few, many = sorted((sides[0][:below], sides[1][: len(ordered) - below]), key=len)
    if gaps.max() > period / 3 and len(few) < NEAREST:  # a tail beyond the cut, and no mirror image
        far = OUTLIER * many[:BESIDE].max() / len(many[:BESIDE])
        return bool(few[0] <= far and np.median(few) <= BEYOND * np.median(many))
    if len(ordered) < 2 * NEAREST:
        return False
    count = round(CLOSE * len(ordered))
    close = np.sort(np.concatenate(sides))[count - 1]
    return all(
        side[:NEAREST].mean() <= UP_TO * side[NEAREST - 1] and (side <= close).sum() > LEAST * count
        for side in sides
    )
