"""A teacher with two ReLU units, free and constrained, by NUTS and by ADVI.

Pourzanjani, Jiang and Petzold 2017, "Improving the identifiability of neural networks for Bayesian
inference", section 4.1 and Figure 1. Beyond the paper: both engines, biases ordered or not, held-out
scores against the true function, and two charts of the unit circle without the seam of Givens'.
"""

from ..lab import FAILURES, STATEMENTS, TRIALS, VERDICTS, Study
from . import views
from .claims import CLAIMS
from .design import cells, configure, target
from .measures import measure
from .pictures import figures
from .text import TEXT

STUDY = Study(
    configure=configure,
    cells=cells,
    target=target,
    measures=measure,
    claims=CLAIMS,
    views=(
        STATEMENTS,
        TRIALS,
        views.AGREEMENT,
        views.SAMPLING,
        views.ALONG_THE_SEAM,
        views.VARIATIONAL,
        views.PREDICTION,
        FAILURES,
    ),
    shown=(views.AGREEMENT, VERDICTS),
    text=TEXT,
    figures=figures,
)
