"""Symmetries as data, and the groups that they generate."""

from .blocks import Complement, Counterparts, Exchangeable, Flip, Rescalable, Rotation, Symmetry
from .group import Group

__all__ = [
    "Complement",
    "Counterparts",
    "Exchangeable",
    "Flip",
    "Group",
    "Rescalable",
    "Rotation",
    "Symmetry",
]
