# The public names. `__init__.py` reads the imports of this file: a name stands here and nowhere else.

from ..inference.calibration.family import Family as Family
from ..posteriors.references import open_reference as open_reference
from ..posteriors.references import references as references
from .labelling import aligned_quantity as aligned_quantity
