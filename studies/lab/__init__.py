"""Tools that all studies share: cells to run, frames of measures, claims tried on them, views and the record."""

# ruff: noqa: F401 -- what is imported here is what studies take from the lab.
from onebasin.truth.pairs import Pairs

from .cells import ENGINE_WORDS, METHOD_WORDS, Cell, CellFailed, Context, Outcomes, where
from .claims import (
    Claim,
    Finding,
    Holds,
    Test,
    Trial,
    Void,
    beside,
    contrast,
    count_verdicts,
    counted,
    each,
    gains,
    join,
    pair,
    paired,
    ratio,
    span,
)
from .effects import EFFECTS, Effect, Measure, Scale, Side, change, changes, exceeds
from .frame import Frame, Frames, Row, Rows, averages, plain, read, select
from .options import Options
from .page import Caution, Chapter, Extra, Text, failed, health, verdicts
from .study import Study
from .tables import (
    CLAIM_VERDICTS,
    CLAIMS,
    FAILURES,
    STATEMENTS,
    TRIALS,
    VERDICTS,
    Field,
    RowTable,
    at_least,
    at_most,
    filled,
    mean_and_sd,
    mean_of,
)
