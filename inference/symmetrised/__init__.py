"""Symmetrised variational inference: an approximation trained as its average over the target's symmetry."""

from .density import LogDensities, log_density
from .method import symmetrised_vi
from .settings import SymmetrisedSettings

__all__ = ["LogDensities", "SymmetrisedSettings", "log_density", "symmetrised_vi"]
