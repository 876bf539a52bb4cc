"""The posteriors that a plot was given: one, or several by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.posteriors.view import Posterior, View, as_view

ALONE = "posterior"
"""Name of a single posterior that came without one."""

Posteriors = Posterior | Mapping[str, Posterior]


def views_of(posteriors: Posteriors) -> dict[str, View]:
    """Open one posterior, or several by name."""
    alone = not _are_several(posteriors)
    return {
        name: as_view(posterior, "posterior" if alone else f"posteriors[{name!r}]")
        for name, posterior in named(posteriors).items()
    }


def named(posteriors: Posteriors) -> dict[str, Posterior]:
    """Give one posterior a name, and several theirs; refuse an empty mapping."""
    if not _are_several(posteriors):
        return {ALONE: posteriors}
    if not posteriors:
        raise ArgumentError(
            "`posteriors` is empty: give a posterior, or several by name, such as {'NUTS': tree}."
        )
    return {str(name): posterior for name, posterior in posteriors.items()}


def titled[T](panels: Mapping[str, T]) -> dict[str, T]:
    """Panels by title; that of a posterior that came without a name has none."""
    return {"" if list(panels) == [ALONE] else name: panel for name, panel in panels.items()}


def _are_several(posteriors: Posteriors) -> bool:
    """Tell whether it is a mapping of posteriors; one of arrays is a single posterior."""
    if isinstance(posteriors, xr.DataTree | xr.Dataset) or not isinstance(posteriors, Mapping):
        return False
    arrays = (np.ndarray, xr.DataArray)
    return not posteriors or not all(isinstance(value, arrays) for value in posteriors.values())
