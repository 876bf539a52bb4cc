"""All small posteriors by name."""

from __future__ import annotations

from functools import cache

from . import mixtures, networks
from .case import Case

NETWORKS = tuple(networks.MAKERS)
MIXTURES = tuple(mixtures.MAKERS)
ALL = NETWORKS + MIXTURES


@cache
def case(name: str) -> Case:
    """Return the case with this name, which caches its integrals."""
    return {**networks.MAKERS, **mixtures.MAKERS}[name]()
