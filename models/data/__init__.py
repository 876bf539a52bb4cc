"""Data sets: one table of loaders, splits by seed, standardisation fitted on the training part.

>>> from onebasin.models.data import load_data, split, standardise
>>> parts = standardise(split(load_data("boston"), seed=1))
>>> parts.train.x.shape, parts.test.x.shape
((405, 13), (101, 13))
"""

from .dataset import Dataset as Dataset
from .dataset import Task as Task
from .dataset import Truth as Truth
from .dataset import Units as Units
from .files import CorruptDataError as CorruptDataError
from .files import MissingDataError as MissingDataError
from .load import TABLE as TABLE
from .load import Loader as Loader
from .load import load_data as load_data
from .load import missing as missing
from .splitting import Split as Split
from .splitting import StandardisedSplit as StandardisedSplit
from .splitting import Standardiser as Standardiser
from .splitting import own_split as own_split
from .splitting import split as split
from .splitting import standardise as standardise
from .synthetic import ReluTeacher as ReluTeacher
from .synthetic import Sinc as Sinc
