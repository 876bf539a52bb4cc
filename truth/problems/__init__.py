"""Problems with reference posteriors: models with fixed data, defined for both engines, with their symmetries.

The module `making` makes their references.
"""

from collections.abc import Mapping

from . import networks, programs
from .problem import Invariant, Problem

__all__ = ["PROBLEMS", "Invariant", "Problem"]

PROBLEMS: Mapping[str, Problem] = {
    problem.name: problem for problem in (*networks.problems(), *programs.problems())
}
"""All problems by name."""
