"""What the package nutpie has of the settings of NUTS, and whether it is there."""

from __future__ import annotations

from importlib.util import find_spec

from onebasin.base.errors import InferenceError

from .settings import HmcSettings, NutsSettings

RADIUS = 2.0
"""Stan programs start uniform within it; nutpie leaves no choice."""


def check_installed() -> None:
    """Refuse to go on without the package.

    Raises
    ------
    InferenceError
        If it is not installed.
    """
    if not _is_installed():
        raise InferenceError(
            "`engine` is 'nutpie', which is not installed; install it with `pip install 'onebasin[nutpie]'`."
        )


def checked(settings: NutsSettings | HmcSettings, *, by_stan: bool) -> NutsSettings:
    """The settings, if nutpie has what they ask for.

    Raises
    ------
    ValueError
        If it has not.
    """
    if not isinstance(settings, NutsSettings):
        raise ValueError(
            "`engine` is 'nutpie', which has no static HMC; use `nuts`, or engine='numpyro' or 'stan'."
        )
    allowed: dict[str, str | float] = {"metric": "diag", "dtype": "float64"}
    if by_stan:
        allowed |= {"init": "random", "init_radius": RADIUS}
    for name, value in allowed.items():
        if (given := getattr(settings, name)) != value:
            of = " of a Stan program" if name.startswith("init") else ""
            raise ValueError(
                f"`{name}` is {given!r}, but engine='nutpie' has {value!r} alone{of}; leave it out, or use "
                "engine='numpyro' or 'stan'."
            )
    return settings


def _is_installed() -> bool:
    try:
        return find_spec("nutpie") is not None
    except ValueError:  # what stands in its place among the loaded modules is no module
        return False
