"""Tools that all studies share: cells to run, frames of measures, claims tried on them, views and the record."""

# ruff: noqa: F401 -- what is imported here is what studies take from the lab.
from .cells import ENGINE_WORDS, METHOD_WORDS, Cell, CellFailed, Context, Outcomes, where
from .claims import (
    Claim,
    Finding,
    Test,
    Trial,
    Void,
    beside,
    contrast,
    count_verdicts,
    counted,
    each,
    join,
    pair,
    span,
)
from .effects import EFFECTS, Measure, changes, exceeds
from .frame import Frame, Frames, Row, Rows, averages, plain, read, select
from .page import (
    FAILURES,
    STATEMENTS,
    TRIALS,
    VERDICTS,
    Caution,
    Chapter,
    Extra,
    Field,
    RowTable,
    at_most,
    failed,
    health,
    mean_and_sd,
    mean_of,
    verdicts,
)
from .pairs import MIN_PAIRS, Effect, Holds, Pairs, Scale, Side
from .study import Options, Study
