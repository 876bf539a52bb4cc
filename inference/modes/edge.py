"""Check whether an optimiser ended at a maximum, or on a path along which the log density keeps rising.

The usual case is the scale of effects that are also parameters: the log density rises without bound as the scale goes
to zero. At a maximum the log density falls in all directions, at distances given by its curvature.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from onebasin.posteriors import schema

from ..contracts.method import Found, one_chain
from ..fits.gaussian import NEAR, Matrix, Vector, square_root

MOST = 100  # Maximum number of coordinates for this check.
FALL = 0.05  # Minimum fall of the log density from a maximum, in nats (0.5 at one sd of a normal),
ALONG = (1, 3, 9)  # at one of these numbers of standard deviations.
SMALL = 0.01  # Share of a Newton step over which the gradient must predict the rise.
FAR = 10.0  # Distance from the unconstrained origin beyond which a variable is near its boundary.
NEWTON = 10  # Maximum number of Newton steps from the end of a climb to a maximum.
LINEAR = 0.1  # A step is kept if halving it changes the difference of gradients by less.
SHORTENED = 12  # Maximum number of reductions of that step.

Climb = Callable[[Vector], tuple[float, Vector]]  # Log density in nats and gradient at a vector.
Values = Callable[[Vector], Mapping[str, np.ndarray]]  # The variables at a vector.


def running_off(climb: Climb, values: Values, vector: Vector) -> str | None:
    """Return the variable along which the log density keeps rising at the end of a climb; None at a maximum."""
    if len(vector) > MOST:
        return None
    ends: list[tuple[Vector, float, Vector, Vector]] = []
    with np.errstate(all="ignore"):
        for _ in range(NEWTON):  # The optimiser may have stopped early.
            height, slope = climb(vector)
            root, definite = square_root(-_curvature(climb, vector))
            left = slope @ root
            ends.append((vector, height, root @ left, slope))
            if not definite or np.linalg.norm(left) < NEAR:
                break
            vector = vector + root @ left
        if not np.linalg.norm(left) < NEAR:
            end, level, way, slope = ends[0]
            way *= min(1.0, FAR / np.abs(way).max())
            rises = climb(end + SMALL * way)[0] > level + SMALL * slope @ way / 2  # Not at a kink.
            far = np.abs(end[np.abs(way).argmax()]) > FAR
            return _moved(values, end, way) if rises and far else None
        for way in (*root.T, *-root.T):
            if all(climb(vector + times * way)[0] > height - FALL for times in ALONG):
                return _moved(values, vector, way)
    return None


def no_peak(name: str, variable: str | None, height: float) -> str:
    """Return the message that a target has no maximum, with advice."""
    where = f": it does not fall as `{variable}` approaches its boundary" if variable else ""
    return (
        f"The log density of {name!r} has no maximum at the highest point that was found ({height:.4g}){where}. "
        "Sample with `nuts` or fit with `dadvi`. For an optimum, give the variable a prior that keeps it away from "
        "its boundary"
    )


def at_optimum(
    draws: Mapping[str, np.ndarray],
    lp: np.ndarray,
    converged: bool,
    name: str,
    variable: str | None,
) -> Found:
    """Return an optimum as one draw, with a note if it is not a maximum."""
    found = one_chain(draws, {"lp": lp}, converged=converged and variable is None)
    if variable is None:
        return found
    note = {schema.OPTIMUM_NOTE: no_peak(name, variable, float(lp[0]))}
    return replace(found, attributes={**found.attributes, **note})


def _curvature(climb: Climb, vector: Vector) -> Matrix:
    """Return second derivatives from differences of gradients over steps where the gradient is nearly linear."""
    found = np.empty((len(vector), len(vector)))
    for place in range(len(vector)):
        step = np.zeros(len(vector))
        step[place] = 1e-2 * max(1.0, abs(vector[place]))
        whole = _difference(climb, vector, step)
        for _ in range(SHORTENED):
            half = _difference(climb, vector, step / 2)
            if np.linalg.norm(half - whole) <= LINEAR * np.linalg.norm(half):
                break
            step, whole = step / 8, _difference(climb, vector, step / 8)
        found[:, place] = whole
    return (found + found.T) / 2


def _difference(climb: Climb, vector: Vector, step: Vector) -> Vector:
    found: Vector = (climb(vector + step)[1] - climb(vector - step)[1]) / (2 * np.abs(step).max())
    return found


def _moved(values: Values, vector: Vector, way: Vector) -> str | None:
    """Return the variable that changes with the largest coordinate of a direction."""
    if not np.isfinite(way).all():
        return None
    step = np.zeros(len(vector))
    step[int(np.abs(way).argmax())] = 1.0
    before, after = values(vector), values(vector + step)
    for name, own in before.items():
        places = np.argwhere(np.asarray(own) != np.asarray(after[name]))
        if len(places):
            entry = ",".join(map(str, places[0]))
            return f"{name}[{entry}]" if entry else name
    return None
