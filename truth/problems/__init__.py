"""Problems whose answers are known: models conditioned on fixed data, stated for both engines, with their symmetries.

`making` makes their references.
"""

from collections.abc import Mapping
from types import MappingProxyType

from . import networks, programs
from .problem import Invariant, Problem

__all__ = ["PROBLEMS", "Invariant", "Problem"]

PROBLEMS: Mapping[str, Problem] = MappingProxyType(
    {problem.name: problem for problem in (*networks.problems(), *programs.problems())}
)
"""By name."""
