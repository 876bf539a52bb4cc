"""The sections of a page about one posterior, one module each; every one takes a `Subject`.

A section is None where there is nothing to show; what is missing in a posterior, and what to store so that it is
shown, a section says in one line.
"""

from .chains import chains
from .fits import fits
from .labels import labels
from .modes import modes
from .parameters import parameters
from .predictions import predictions
from .sampler import sampler

OF_ONE = (modes, labels, fits, parameters, sampler, chains, predictions)
"""The sections of a page, in their order."""
