"""Five layers of 32 SELU units on a sinc function: the symmetry as it is, or broken, by mean-field VI and by MCMC.

Kurle, Januschowski, Gasthaus and Wang 2021, "On symmetries in variational Bayesian neural nets", Figure 1 and equation
6. Beyond the paper: numbers, paired over data sets; the posteriors themselves by NUTS and MCLMC; the gap of equation 6
by layer, during the training; what collapses; two scales of the prior.
"""

from .. import lab
from ..lab.effects import EFFECTS
from .claims import CLAIMS
from .design import cells, configure, target
from .figures import figures
from .making import make
from .measures import measure
from .text import TEXT
from .views import COLLAPSE, PREDICTIONS, VIEWS

STUDY = lab.Study(
    configure=configure,
    cells=cells,
    target=target,
    measures=measure,
    claims=CLAIMS,
    views=(lab.STATEMENTS, EFFECTS, *VIEWS, lab.FAILURES),
    shown=(PREDICTIONS, COLLAPSE, lab.VERDICTS),
    text=TEXT,
    figures=figures,
    make=make,
)
