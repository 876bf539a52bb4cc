"""The search over a posterior: what its draws show of labels that switch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onebasin.posteriors.view import View

from ..summaries.deciding import deciding, looked_at, rhat_of_entries
from .candidate import Candidate, Values
from .discover import discover


def search(values: Values, known: Mapping[str, np.ndarray] | None = None) -> tuple[Candidate, ...]:
    """Return what switches in draws: candidates that are certain, in the order they were found, or one that is not.

    Parameters
    ----------
    values : mapping of str to array (chain, draw, *event)
        Variables that decide, all finite.
    known : mapping of str to array (param,), optional
        R-hat of variables' entries in C order, which need not be computed again.
    """
    if not values:
        return ()
    found = discover(values, rhat_of_entries, known=known)
    return (*found.certain, *((found.ambiguous,) if found.ambiguous else ()))


def search_posterior(view: View) -> tuple[Candidate, ...]:
    """The same of a posterior's parameters; entries that are not finite count as 0."""
    names, _ = deciding(view)
    values = looked_at(view, names)
    return search({name: np.where(np.isfinite(v), v, 0.0) for name, v in values.items()})
