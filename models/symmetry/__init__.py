"""Symmetries as data, and the groups that they generate."""

from .blocks import Complement, Exchangeable, Flip, Rescalable, Symmetry
from .group import Group

__all__ = ["Complement", "Exchangeable", "Flip", "Group", "Rescalable", "Symmetry"]
