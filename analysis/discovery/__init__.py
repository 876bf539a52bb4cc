"""Which components of a posterior are interchangeable, found from its draws alone.

`discover` looks for them; what it finds are blocks to align by, and the words to declare them with. `resolve` says
which symmetry a posterior has.
"""

from .candidates import Candidate
from .discover import discover
from .resolve import Resolved, resolve

__all__ = ["Candidate", "Resolved", "discover", "resolve"]
