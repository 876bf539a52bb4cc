"""Angles among draws: parameters on a circle that is cut open, whose draws meet across the cut.

An angle that lies across the cut has draws at both ends, which are neighbours: its plain mean lies on the other side of
the circle. Draws that meet have the same density on both sides of the cut; those of a parameter and its mirror image
end in tails before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

CUTS = ((-np.pi, 2 * np.pi), (0.0, 2 * np.pi), (-180.0, 360.0), (0.0, 360.0))
"""Beginnings of circles, and their lengths."""
REACH = 0.02
"""Share of a circle within which draws come to both of its ends."""
NEAREST, UP_TO = 40, 0.71
"""Draws on each side of the cut whose distances are looked at, and their mean at most, over that of the farthest: a
half where the density goes on, more in a tail."""
CLOSE, LEAST = 0.1, 0.1
"""Share of all draws that are next to the cut, and of these the share that is on each side at least."""
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


def circles_of(values: Float[np.ndarray, "chain draw column"]) -> dict[int, Circle]:
    """Find the columns that are angles whose draws meet across the cut of a circle."""
    found = {}
    low, high = (f(values, axis=(0, 1)) for f in (np.min, np.max)) if values.size else ((), ())
    for first, period in CUTS:
        ends = np.stack([np.subtract(low, first), np.subtract(first + period, high)])
        near = ((ends >= -1e-6 * period) & (ends <= REACH * period)).all(axis=0)
        for place in np.flatnonzero(near).tolist():
            column = values[..., place]
            if place not in found and _meet(np.unique(column), first, period):
                found[place] = _circle(column, first, period)
    return found


def unwrapped(values: Float[np.ndarray, "chain draw *event"]) -> np.ndarray:
    """Return draws with the entries that are angles within half a circle of their means."""
    flat = values.reshape(*values.shape[:2], -1)
    for place, circle in (found := circles_of(flat)).items():
        flat = flat.copy() if place == next(iter(found)) else flat
        flat[..., place] = circle.unwrapped(flat[..., place])
    return flat.reshape(values.shape)


def _circle(values: Float[np.ndarray, "chain draw"], first: float, period: float) -> Circle:
    unit = 2 * np.pi / period
    mean = np.exp(1j * unit * values).mean()
    centre = first + (float(np.angle(mean)) / unit - first) % period
    circle = Circle(period, centre, float(np.sqrt(-2 * np.log(abs(mean)))) / unit)
    if (circle.unwrapped(values) != values).mean() > MOVED:
        centre = (centre + period / 4) % period - period / 4
    return Circle(period, centre, circle.sd)


def _meet(ordered: Float[np.ndarray, " draw"], first: float, period: float) -> bool:
    """Tell whether different draws, in order, meet across the cut, by their distances from it on both sides."""
    sides = [np.abs(ordered - first), np.abs(first + period - ordered)[::-1]]
    gaps = np.diff(ordered)
    below = int(gaps.argmax()) + 1
    few, many = sorted((sides[0][:below], sides[1][: len(ordered) - below]), key=len)
    if gaps.max() > period / 3 and len(few) < NEAREST:  # a tail beyond the cut, and no mirror image
        far = OUTLIER * many[:BESIDE].max() / len(many[:BESIDE])
        return bool(few[0] <= far and np.median(few) <= BEYOND * np.median(many))
    if len(ordered) < 2 * NEAREST or (ordered == np.rint(ordered)).all():
        return False
    count = round(CLOSE * len(ordered))
    close = np.sort(np.concatenate(sides))[count - 1]
    return all(
        side[:NEAREST].mean() <= UP_TO * side[NEAREST - 1] and (side <= close).sum() > LEAST * count
        for side in sides
    )
