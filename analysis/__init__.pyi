# The public names. `__init__.py` reads this file: a name stands here and nowhere else.

from .alignment import align as align
from .compare.distances import compare_moments as compare_moments
from .compare.distances import two_sample as two_sample
from .diagnostics.diagnose import diagnose as diagnose
from .diagnostics.labels import diagnose_aligned as diagnose_aligned
from .gaussian import fit_gaussian as fit_gaussian
from .gaussian.distillation import distil as distil
from .predictive.scores import score_predictions as score_predictions
