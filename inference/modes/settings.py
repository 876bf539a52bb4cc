"""Settings of optimisation, of Laplace's approximation and of Pathfinder."""

from __future__ import annotations

from typing import Literal

from onebasin.models.settings import Count, Positive, settings


@settings
class OptimumSettings:
    """How an optimum is sought.

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


@settings
class OptimizeSettings(OptimumSettings):
    """Settings of optimisation.

    Parameters
    ----------
    jacobian : bool
        Whether the log Jacobian of the constraints is added, which gives the mode in the unconstrained space; without
        it, as CmdStan has it, the mode in the variables' own.

    Examples
    --------
    >>> ob.OptimizeSettings(jacobian=True).starts
    4
    """

    jacobian: bool = False


@settings
class LaplaceSettings(OptimumSettings):
    """Settings of Laplace's approximation.

    Parameters
    ----------
    draws : int
        Draws taken from the fitted approximation.

    Examples
    --------
    >>> ob.LaplaceSettings(draws=4000).iterations
    2000
    """

    draws: Count = 1000


@settings
class PathfinderSettings:
    """Settings of Pathfinder (Zhang et al. 2022), in Stan's defaults.

    Parameters
    ----------
    paths : int
        Paths of L-BFGS, each from a starting point of its own; with one, nothing is resampled.
    draws : int
        Draws kept, resampled from those of all paths by Pareto smoothed importance weights.
    path_draws : int
        Draws of each path, before they are resampled.
    iterations : int
        Most steps of L-BFGS of a path.
    elbo_samples : int
        Monte Carlo draws of an evaluation of the ELBO.
    history : int
        Steps by which the curvature is estimated.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.

    Examples
    --------
    >>> ob.PathfinderSettings(paths=8).elbo_samples
    25
    """

    paths: Count = 4
    draws: Count = 1000
    path_draws: Count = 1000
    iterations: Count = 1000
    elbo_samples: Count = 25
    history: Count = 5
    init_radius: Positive = 2.0
