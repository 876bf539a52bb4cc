"""What optimisation and Laplace's approximation have in common: the search for an optimum."""

from __future__ import annotations

from typing import Literal

from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Method


@settings
class OptimumSearch(Method):
    """Settings of the search for an optimum.

    Parameters
    ----------
    starts : int
        Starting points from which an optimum is sought; the highest is kept.
    iterations : int
        Most steps of L-BFGS from a starting point.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine; Stan always has float64.
    """

    starts: Count = 4
    iterations: Count = 2000
    init_radius: Positive = 2.0
    dtype: Literal["float64", "float32"] = "float64"
