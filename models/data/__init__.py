"""Data sets: one table of loaders, splits by seed, standardisation fitted on the training part.

>>> from onebasin.models.data import load_data, split, standardise
>>> parts = standardise(split(load_data("boston"), seed=1))
>>> parts.train.x.shape, parts.test.x.shape
((405, 13), (101, 13))
"""

from .dataset import Dataset, Task, Truth, Units
from .folders import CorruptDataError, MissingDataError
from .splitting import Split, own_split, split
from .standardising import StandardisedSplit, Standardiser, standardise
from .synthetic import AbsoluteValue, ReluTeacher, Sinc
from .table import TABLE, Loader, load_data, missing, names

__all__ = [
    "TABLE",
    "AbsoluteValue",
    "CorruptDataError",
    "Dataset",
    "Loader",
    "MissingDataError",
    "ReluTeacher",
    "Sinc",
    "Split",
    "StandardisedSplit",
    "Standardiser",
    "Task",
    "Truth",
    "Units",
    "load_data",
    "missing",
    "names",
    "own_split",
    "split",
    "standardise",
]
