# The public names. `errors.py` reads the imports of this file: a name stands here and nowhere else.

from .base.errors import InferenceError as InferenceError
from .base.errors import PosteriorFileError as PosteriorFileError
from .inference.density.symmetry import SymmetryError as SymmetryError
