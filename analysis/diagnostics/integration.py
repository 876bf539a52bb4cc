"""What unadjusted dynamics leaves in its draws: a bias of the step size, which no comparison of chains can show."""

from __future__ import annotations

import math

from ..posterior.sampler import SamplerSummary
from .checks import Check, failed, not_judged, passed

NAME = "step-size bias"
LOST = 1.0
"""Energy variance per parameter from which on the integrator does not follow the density at all."""


def step_size_bias(sampler: SamplerSummary) -> Check | None:
    """Judge microcanonical dynamics by the energy errors of its steps; None where it was adjusted for them."""
    if sampler.acceptance_per_chain:
        return passed(NAME)
    variance = sampler.energy_variance
    if math.isnan(variance):
        return not_judged(
            NAME,
            "Energy errors were not recorded",
            remedy="Keep `energy_variance` in `sample_stats`",
        )
    fact = f"Unadjusted steps with an energy variance of {variance:.2g} per parameter"
    if variance > LOST:
        return failed(
            NAME,
            fact,
            "the integrator does not follow the density, and the draws are not those of the posterior",
            "Lower `energy_variance`, warm up longer, or use `adjusted=True`",
        )
    return not_judged(
        NAME,
        fact,
        "the draws have a bias of the step size, which neither R-hat nor ESS shows",
        "Hold what matters against a run with a smaller `energy_variance`, `adjusted=True` or `nuts`",
    )
