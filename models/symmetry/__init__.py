"""Symmetries as data, and the groups that they generate."""

from .blocks import AxisPart as AxisPart
from .blocks import Complement as Complement
from .blocks import Counterparts as Counterparts
from .blocks import Exchangeable as Exchangeable
from .blocks import Flip as Flip
from .blocks import Group as Group
from .blocks import Rescalable as Rescalable
from .blocks import Rotation as Rotation
from .blocks import Symmetry as Symmetry
