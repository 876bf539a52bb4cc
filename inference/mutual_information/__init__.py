"""The mutual information that a symmetrised approximation gains over the approximation itself: estimates and bounds.

`log_ratios` takes what part of a draw has which log density under which part's distribution (`pairwise` makes them for
Gaussian parts), an estimator makes of it log sums over the group, `information` the mutual information, and `interval`
both of its sides; `layered_interval` those of several layers at once. `path_gradient`, with the marginals of `exact`
for few parts and `training_marginals` of many, is what to train with.
"""

from .estimators import (
    Estimate,
    Estimator,
    barber_agakov,
    bethe,
    exact,
    fractional,
    importance,
    infonce,
    information,
    proposals_only,
    sinkhorn,
)
from .gradient import path_gradient
from .interval import Interval, from_values, interval, layered_interval, sides
from .messages import training_marginals
from .ratios import LogRatios, log_ratios

__all__ = [
    "Estimate",
    "Estimator",
    "Interval",
    "LogRatios",
    "barber_agakov",
    "bethe",
    "exact",
    "fractional",
    "from_values",
    "importance",
    "infonce",
    "information",
    "interval",
    "layered_interval",
    "log_ratios",
    "path_gradient",
    "proposals_only",
    "sides",
    "sinkhorn",
    "training_marginals",
]
