"""Chains that are too short: they disagree with their own halves, or have few effective draws."""

from __future__ import annotations

import math


def times_as_many(ess: float, needed: float, rhat: float, limit: float) -> int:
    """How many times as many draws it takes, by ESS and by R-hat's excess over one."""
    by_ess = needed / ess if ess > 0 else 1.0
    by_rhat = (rhat - 1) / (limit - 1) if math.isfinite(rhat) else 1.0
    return max(2, math.ceil(max(by_ess, by_rhat)))
