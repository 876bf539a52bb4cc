"""Tools that all studies share: cells to run, frames of measures, and tables of them."""

# ruff: noqa: F401 -- what is imported here is what studies take from the lab.
from .study import Cell, CellFailed, Context, Options, Outcomes, Study
from .tables import (
    METHOD_WORDS,
    Change,
    Frames,
    Row,
    Summary,
    find,
    frame_of,
    rows_of,
    select,
    where,
)
