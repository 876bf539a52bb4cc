"""Is a reference what it claims to be? Answered from its files alone, by code that shares no line with what made them.

NumPy, SciPy and h5py only: nothing of ours is imported here, and no library that the maker computes with. Estimators
are written from the paper (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021), the group's action from what the
file's information says of it.
"""

from .agreement import Agreement, agree
from .verdict import ReferenceVerdict, check

__all__ = ["Agreement", "ReferenceVerdict", "agree", "check"]
