"""Data sets: one table of loaders, splits by seed, standardisation fitted on the training part.

>>> from onebasin.models.data import load_data, split, standardise
>>> parts = standardise(split(load_data("boston"), seed=1))
>>> parts.train.x.shape, parts.test.x.shape
((405, 13), (101, 13))
"""

from .dataset import Dataset as Dataset
from .dataset import Split as Split
from .dataset import StandardisedSplit as StandardisedSplit
from .dataset import Standardiser as Standardiser
from .dataset import own_split as own_split
from .dataset import split as split
from .dataset import standardise as standardise
from .load import TABLE as TABLE
from .load import VARIABLE as VARIABLE
from .load import CorruptDataError as CorruptDataError
from .load import MissingDataError as MissingDataError
from .load import load_data as load_data
from .load import missing as missing
from .synthetic import ReluTeacher as ReluTeacher
from .synthetic import Sinc as Sinc
