"""Symmetries as data, and the groups that they generate."""

from .blocks import Complement, Exchangeable, Rescalable, Symmetry
from .group import Group

__all__ = ["Complement", "Exchangeable", "Group", "Rescalable", "Symmetry"]
