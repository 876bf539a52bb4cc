"""What the package nutpie has of the settings of NUTS."""

from __future__ import annotations

from onebasin.base.errors import ArgumentError

from .nuts import Nuts

RADIUS = 2.0
"""Stan programs start uniform within it; nutpie leaves no choice."""


def checked(settings: Nuts, *, by_stan: bool) -> Nuts:
    """The settings, if nutpie has what they ask for.

    Raises
    ------
    ValueError
        If it has not.
    """
    allowed: dict[str, str | float] = {"metric": "diag", "dtype": "float64"}
    if by_stan:
        allowed |= {"init": "random", "init_radius": RADIUS}
    for name, value in allowed.items():
        if (given := getattr(settings, name)) != value:
            of = " of a Stan program" if name.startswith("init") else ""
            raise ArgumentError(
                f"`{name}` is {given!r}, but engine='nutpie' has {value!r} alone{of}; leave it out, or use "
                "engine='numpyro' or 'stanli'."
            )
    return settings
