"""Symmetrised variational inference: an approximation trained as its average over the target's symmetry."""

from .density import LogDensities, log_density
from .settings import SymmetrisedSettings
from .symmetrised import symmetrised_vi

__all__ = ["LogDensities", "SymmetrisedSettings", "log_density", "symmetrised_vi"]
