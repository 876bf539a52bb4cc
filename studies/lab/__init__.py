"""What all studies share: cells to run, frames of measures, claims tried on them, views and the record."""

from .cells import ENGINE_WORDS, METHOD_WORDS, Cell, CellFailed, Context, Outcomes, where
from .claims import Claim, Test, Trial, count_verdicts
from .comparisons import Finding, contrast, each, join, pair, paired, ratio, span
from .frame import Frame, Frames, Row, Rows, plain, read, select
from .options import Options
from .page import Chapter, Text, failed, health
from .pairs import Pairs
from .study import Study
from .views import (
    CLAIM_VERDICTS,
    CLAIMS,
    FAILURES,
    STATEMENTS,
    TRIALS,
    VERDICTS,
    Field,
    View,
    at_least,
    at_most,
    filled,
)

__all__ = [
    "CLAIMS",
    "CLAIM_VERDICTS",
    "ENGINE_WORDS",
    "FAILURES",
    "METHOD_WORDS",
    "STATEMENTS",
    "TRIALS",
    "VERDICTS",
    "Cell",
    "CellFailed",
    "Chapter",
    "Claim",
    "Context",
    "Field",
    "Finding",
    "Frame",
    "Frames",
    "Options",
    "Outcomes",
    "Pairs",
    "Row",
    "Rows",
    "Study",
    "Test",
    "Text",
    "Trial",
    "View",
    "at_least",
    "at_most",
    "contrast",
    "count_verdicts",
    "each",
    "failed",
    "filled",
    "health",
    "join",
    "pair",
    "paired",
    "plain",
    "ratio",
    "read",
    "select",
    "span",
    "where",
]
