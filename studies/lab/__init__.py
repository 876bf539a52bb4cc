"""Tools that all studies share: cells to run, frames of measures, and tables of them."""

# ruff: noqa: F401 -- what is imported here is what studies take from the lab.
from .cells import ENGINE_WORDS, METHOD_WORDS, Cell, CellFailed, Context, Outcomes
from .frames import Frames, Row, find, frame_of, rows_of, select, where
from .study import Options, Study
from .tables import Change, Measure, Printed, Summary
