"""Words of variational methods: families and estimators."""

from __future__ import annotations

FAMILIES = ("meanfield", "block", "lowrank")
ESTIMATORS = ("none", "exact", "fractional", "barber_agakov", "importance", "infonce", "bethe")
CHOICES = ("auto", *ESTIMATORS)
