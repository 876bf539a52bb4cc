"""Checks of starting points and errors about them, for NumPyro models and Stan programs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.text import dotted

TRIES = 100  # Maximum number of points tried for a start, as in Stan.
RADIUS = 2.0  # Symmetries are checked at points uniform within +-RADIUS in the unconstrained space.


def no_start(name: str, reason: str) -> InferenceError:
    """Return the error for a chain or a fit that has no starting point."""
    return InferenceError(
        f"No starting point with a finite log density was found for {name!r} ({reason}). Check the data and the prior, "
        "or lower `init_radius`."
    )


def no_point(name: str, tried: int) -> InferenceError:
    """Return the error for a symmetry that cannot be checked at any point."""
    return InferenceError(
        f"No point with a finite log density was found for {name!r} among {tried} points within +-{RADIUS:g} in the "
        "unconstrained space. Check the data and the prior."
    )


def check_names(start: Mapping[str, Any], expected: tuple[str, ...]) -> Mapping[str, Any]:
    """Check that a start has exactly the expected variables, and return it."""
    start = dotted(start)
    missing = [name for name in expected if name not in start]
    unknown = [name for name in start if name not in expected]
    if missing or unknown:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        faults += [f"has {', '.join(map(str, unknown))}, which the target lacks"] if unknown else []
        raise ArgumentError(
            f"`start` {' and '.join(faults)}. Give values for exactly these variables: {', '.join(expected)}."
        )
    return start


def shaped(name: str, shape: tuple[int, ...], start: Any) -> np.ndarray:
    """Return the value of a variable if it has the right shape."""
    values = np.asarray(start, np.float64)
    if values.shape != shape:
        raise ArgumentError(
            f"The value of {name} in `start` has shape {values.shape}, but the target needs shape {shape}."
        )
    return values
