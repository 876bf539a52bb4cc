# The public names. `approximations.py` reads the imports of this file: a name stands here and nowhere else.

from .analysis.gaussian import fit_gaussian as fit_gaussian
from .analysis.gaussian.distillation import DistillationSettings as DistillationSettings
from .analysis.gaussian.distillation import distil as distil
from .analysis.summaries.variational import elbo as elbo
from .inference.variational.term import mixture_gap as mixture_gap
