"""Settings of optimisation, of Laplace's approximation, of Pathfinder and of sampling mode by mode."""

from __future__ import annotations

from typing import Literal

from onebasin.base.settings import Count, Positive, Probability, Several, settings

from ..mcmc.settings import NutsSettings


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


@settings
class ModesSettings:
    """Settings of sampling mode by mode.

    Parameters
    ----------
    starts : int
        Random points from which optima are sought, uniform within +-init_radius in the unconstrained space.
    most : int
        Modes that are sampled, those of the largest log evidence by their short chains; of the others it is said how
        far below they lie.
    chains : int
        Chains of each mode, and of the posterior that is made of them.
    warmup : int
        Iterations of adaptation of each chain.
    draws : int
        Draws kept of each chain.
    target_acceptance : float
        Mean acceptance probability that step size adaptation aims at, in (0, 1).
    metric : {"diag", "dense", "unit"}
        Shape of the inverse mass matrix.
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth - 1 leapfrog steps.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.

    Examples
    --------
    >>> ob.ModesSettings(starts=100).most
    8
    """

    starts: Count = 40
    most: Count = 8
    chains: Several = 4
    warmup: Count = 1000
    draws: Count = 1000
    target_acceptance: Probability = 0.8
    metric: Literal["diag", "dense", "unit"] = "diag"
    max_tree_depth: Count = 10
    init_radius: Positive = 2.0

    def nuts(self, chains: int, *, warmup: int, draws: int) -> NutsSettings:
        """Settings of some of the chains."""
        return NutsSettings(
            chains=chains,
            warmup=warmup,
            draws=draws,
            target_acceptance=self.target_acceptance,
            metric=self.metric,
            max_tree_depth=self.max_tree_depth,
        )
