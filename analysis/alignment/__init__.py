"""Alignment of posterior draws modulo a declared symmetry ("rebasin").

- `align` moves every draw to a reference and returns an `Alignment`;
- `switching` measures how much components change places within chains, and whether alignment brought
  draws closer than it brings noise;
"""

from .align import align
from .alignment import Alignment, AlignmentRule
from .switching import Switching, switching

__all__ = ["Alignment", "AlignmentRule", "Switching", "align", "switching"]
