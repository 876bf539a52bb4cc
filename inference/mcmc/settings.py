"""Settings of NUTS and static HMC, in words that hold for both engines."""

from __future__ import annotations

import math
from typing import Literal

from onebasin.base.settings import Count, Positive, Probability, settings


@settings
class McmcSettings:
    """What NUTS and static HMC share.

    Parameters
    ----------
    chains : int
        Independent chains.
    warmup : int
        Iterations of adaptation of each chain.
    draws : int
        Draws kept of each chain.
    target_acceptance : float
        Mean acceptance probability that step size adaptation aims at, in (0, 1).
    metric : {"diag", "dense", "unit"}
        Shape of the inverse mass matrix.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    init : {"random", "optimum"}
        Whether a chain starts at a random point, or at the best optimum of the log density (in the unconstrained space,
        with the Jacobian) that L-BFGS finds from several of them. Optima keep chains out of modes that hold next to
        no probability; but chains that all start at the same optimum tell R-hat little about other modes.
    init_starts : int
        Starting points of a chain from which an optimum is sought.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine, and of its draws; Stan always has float64.
    """

    chains: Count = 4
    warmup: Count = 1000
    draws: Count = 1000
    target_acceptance: Probability = 0.8
    metric: Literal["diag", "dense", "unit"] = "diag"
    init_radius: Positive = 2.0
    init: Literal["random", "optimum"] = "random"
    init_starts: Count = 10
    dtype: Literal["float64", "float32"] = "float64"


@settings
class NutsSettings(McmcSettings):
    """Settings of the no-U-turn sampler.

    Parameters
    ----------
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth - 1 leapfrog steps.

    Examples
    --------
    >>> ob.NutsSettings(draws=500, target_acceptance=0.95).max_tree_depth
    10
    """

    max_tree_depth: Count = 10


@settings
class HmcSettings(McmcSettings):
    """Settings of static HMC.

    Parameters
    ----------
    trajectory_length : float
        Integration time of every trajectory; steps are trajectory_length / step_size. The default is a quarter of a
        Gaussian's period in the adapted metric, after which its position is independent of the last. NumPyro's and
        CmdStan's own default, 2 pi, is a whole period: a Gaussian is back where it began, and chains hardly move.
    max_steps : int
        Most leapfrog steps of a trajectory, which ends early rather than take more (NumPyro); without a bound, one
        unlucky step size of the warmup can take hours. Stan has no bound.

    Examples
    --------
    >>> ob.HmcSettings(trajectory_length=3.0).chains
    4
    """

    trajectory_length: Positive = math.pi / 2
    max_steps: Count = 10_000
