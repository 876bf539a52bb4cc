"""Tools that all studies share: cells to run, frames of measures, and tables of them."""

# ruff: noqa: F401 -- what is imported here is what studies take from the lab.
from .cells import ENGINE_WORDS, METHOD_WORDS, Cell, CellFailed, Context, Outcomes
from .frame import Frame, Frames, Row, Rows, plain, read, select
from .study import Options, Study
from .tables import Change, Measure, Printed, Summary
