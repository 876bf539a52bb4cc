"""Settings of microcanonical Langevin Monte Carlo."""

from __future__ import annotations

from typing import Literal

from onebasin.base.settings import Count, Positive, Probability, WholeNumber, settings

GRADIENTS = 2
"""Gradients that a step of the integrator takes."""
NETWORKS_VARIANCE, OTHERS_VARIANCE = 0.03, 5e-4
"""What `energy_variance` is by default: of networks, and of any other model."""


@settings
class MclmcSettings:
    """Settings of microcanonical Langevin Monte Carlo.

    Parameters
    ----------
    chains : int
        Independent chains, each from a start of its own.
    warmup : int
        Iterations that tune each chain's step size and metric: integration steps, or transitions where adjusted.
    draws : int
        Draws kept of each chain.
    thin : int
        Iterations a kept draw. An integration step takes two gradients.
    adjusted : bool
        Whether trajectories are accepted or rejected (Metropolis), so that the draws have no bias of the step size; the
        unadjusted chain keeps every step and has one, which falls with `energy_variance`.
    energy_variance : float or None
        Variance of a step's energy error per parameter, which the unadjusted chain's step size is tuned to: smaller is
        less biased and slower. `None` for 0.03 with networks, whose modes have to be moved through, and 0.0005 with
        other models, where it makes variances about 1 % too small.
    target_acceptance : float
        Mean acceptance probability that the adjusted chain's step size is tuned to, in (0, 1).
    length : float or None
        Way after which the momentum is forgotten, in units of the metric (the mean number of integration steps of an
        adjusted trajectory times the step size); `None` for half the root of the number of parameters, or the whole
        root where adjusted.
    metric : {"auto", "diag", "unit"}
        Whether coordinates are scaled by their standard deviations in the warmup. "auto" scales those of any model but
        a network, whose short warmup misjudges them.
    start_steps : int
        Steps of Adam towards higher density that each chain begins with. More of them end in narrow modes, which a
        chain is slow to leave.
    learning_rate : float
        Adam's first step size, which falls to zero along half a cosine.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space; a network's are those of an
        ensemble's members (`EnsembleSettings.init` "he").
    dtype : {"float64", "float32"}
        Precision of the chains and of their draws.

    Examples
    --------
    >>> ob.MclmcSettings(adjusted=True).target_acceptance
    0.9
    """

    chains: Count = 4
    warmup: Count = 5000
    draws: Count = 1000
    thin: Count = 10
    adjusted: bool = False
    energy_variance: Positive | None = None
    target_acceptance: Probability = 0.9
    length: Positive | None = None
    metric: Literal["auto", "diag", "unit"] = "auto"
    start_steps: WholeNumber = 200
    learning_rate: Positive = 5e-3
    init_radius: Positive = 2.0
    dtype: Literal["float64", "float32"] = "float64"
