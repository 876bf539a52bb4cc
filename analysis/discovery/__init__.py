"""Find the interchangeable components of a posterior from only its draws.

`discover` returns blocks for alignment, and the words to declare them. `resolve` says
which symmetry a posterior has.
"""

from .candidates import Candidate
from .discover import discover
from .resolve import Resolved, resolve

__all__ = ["Candidate", "Resolved", "discover", "resolve"]
