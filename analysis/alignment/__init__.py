"""Alignment of posterior draws modulo a declared symmetry ("rebasin").

- `align` moves every draw to a reference and returns an `Alignment`;
- `switching` measures how much components change places within chains, and whether alignment brought
  draws closer than it brings noise;
- `element_of` reads saved elements back;
- `declared_symmetry` reads the symmetry that a posterior declares.
"""

from .align import align
from .preparation import declared_symmetry
from .result import Alignment, element_of
from .rule import Rule
from .switching import Switching, switching

__all__ = [
    "Alignment",
    "Rule",
    "Switching",
    "align",
    "declared_symmetry",
    "element_of",
    "switching",
]
