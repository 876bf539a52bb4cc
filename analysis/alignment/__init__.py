"""Alignment of posterior draws modulo a declared symmetry ("rebasin").

- `align` moves every draw to a reference and returns an `Alignment`;
- `switching` counts label changes within chains, and compares the gain of alignment with its gain on noise.
"""

from .align import align
from .alignment import Alignment, AlignmentRule
from .switching import Switching, switching

__all__ = ["Alignment", "AlignmentRule", "Switching", "align", "switching"]
