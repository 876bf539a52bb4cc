"""Diagnostics raw and aligned, over models whose parts are interchangeable, on data with a known truth.

The experiment is our own: what Stephens 2000, "Dealing with label switching in mixture models" (JRSS B 62(4)),
shows on mixtures, held here against mixtures, topics, factors, a hidden Markov model and a network, with chains of
NUTS that know nothing of labels. What docs/label-switching.md claims is measured here.
"""

from ..lab import CLAIM_VERDICTS, Study
from .claims import CLAIMS
from .design import cells, configure, make, target
from .measures import measure
from .pictures import figures
from .text import TEXT
from .views import DIAGNOSTICS, VIEWS

STUDY = Study(
    configure=configure,
    cells=cells,
    target=target,
    make=make,
    measures=measure,
    claims=CLAIMS,
    views=VIEWS,
    text=TEXT,
    shown=(DIAGNOSTICS, CLAIM_VERDICTS),
    figures=figures,
)
