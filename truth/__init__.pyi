# The public names. `__init__.py` reads the imports of this file: a name stands here and nowhere else.

from ..analysis.alignment.quantity import aligned_quantity as aligned_quantity
from ..analysis.compare.reference.compare import compare_with_reference as compare_with_reference
from ..inference.calibration.family import Family as Family
from .alignment_failures import PlantedComponents as PlantedComponents
from .alignment_failures import failure_rates as failure_rates
from .reference import Reference as Reference
from .reference import open_reference as open_reference
from .reference import references as references
