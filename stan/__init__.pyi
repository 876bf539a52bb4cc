# The public names. `__init__.py` reads this file: a name stands here and nowhere else.

from .home.directory import Home as Home
from .home.errors import CmdStanNotFound as CmdStanNotFound
from .home.errors import HomeBuildError as HomeBuildError
from .home.errors import StanDataError as StanDataError
from .home.errors import StanError as StanError
from .home.errors import StanProgramError as StanProgramError
from .home.errors import StanRunError as StanRunError
from .home.search import existing_cmdstan as existing_cmdstan
from .home.search import find_cmdstan as find_cmdstan
from .library import open_library as open_library
from .program import StanProgram as StanProgram
from .program import cmdstan_model as cmdstan_model
from .program import definition as definition
from .program import stan_program as stan_program
