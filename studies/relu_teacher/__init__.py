"""A teacher with two ReLU units, free and constrained, by NUTS and by ADVI.

Pourzanjani, Jiang and Petzold 2017, "Improving the identifiability of neural networks for Bayesian
inference", section 4.1 and Figure 1. Beyond the paper: both engines, biases ordered or not, held-out
scores against the true function, and two charts of the unit circle without the seam of Givens'.
"""

from .. import lab
from ..against_nuts import ENGINES_AGREE
from .claims import CLAIMS
from .design import cells, configure, measure, target
from .page import TABLES, TEXT, figures

STUDY = lab.Study(
    configure=configure,
    cells=cells,
    target=target,
    measures=measure,
    claims=CLAIMS,
    views=(lab.STATEMENTS, lab.TRIALS, *TABLES, lab.FAILURES),
    shown=(ENGINES_AGREE, lab.VERDICTS),
    text=TEXT,
    figures=figures,
)
