"""Messages of both densities about starting points: names, shapes, and that there are none."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.text import dotted

TRIES = 100  # Points that are tried for a start; Stan's own number.
RADIUS = 2.0
"""Points at which a symmetry is tried are uniform within it, in the unconstrained space."""


def no_start(name: str, reason: str) -> InferenceError:
    """Say that no point was found from which a chain or a fit may start."""
    return InferenceError(
        f"No starting point with a finite log density was found for {name!r}; "
        f"check the data and the prior, or make `init_radius` smaller ({reason})."
    )


def no_point(name: str, tried: int) -> InferenceError:
    """Say that no point was found at which a symmetry can be tried."""
    return InferenceError(
        f"No point with a finite log density was found for {name!r}, {tried} of them within {RADIUS:g} in the "
        "unconstrained space; check the data and the prior."
    )


def check_names(start: Mapping[str, Any], expected: tuple[str, ...]) -> Mapping[str, Any]:
    """Return a start by the names of the variables, of which none may be missing and none be more."""
    start = dotted(start)
    missing = [name for name in expected if name not in start]
    unknown = [name for name in start if name not in expected]
    if missing or unknown:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        faults += (
            [f"has {', '.join(map(str, unknown))}, which the target does not"] if unknown else []
        )
        raise ArgumentError(f"`start` {' and '.join(faults)}; give {', '.join(expected)}.")
    return start


def shaped(name: str, shape: tuple[int, ...], start: Any) -> np.ndarray:
    """Return a variable's value, if it has the shape of the target's."""
    values = np.asarray(start, np.float64)
    if values.shape != shape:
        raise ArgumentError(
            f"`start` gives {name} the shape {values.shape}; the target's is {shape}."
        )
    return values
