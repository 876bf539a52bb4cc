"""Which components of a posterior are interchangeable, found from its draws alone.

`discover` looks for them; what it finds are blocks to align by, and the words to declare them with.
"""

from .candidate import Candidate, Discovery
from .discover import BAD_RHAT, discover

__all__ = ["BAD_RHAT", "Candidate", "Discovery", "discover"]
