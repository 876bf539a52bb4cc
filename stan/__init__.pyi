# The public names. `__init__.py` reads this file: a name stands here and nowhere else.

from onebasin.base.errors import CmdStanNotFound as CmdStanNotFound
from onebasin.base.errors import HomeBuildError as HomeBuildError
from onebasin.base.errors import StanDataError as StanDataError
from onebasin.base.errors import StanError as StanError
from onebasin.base.errors import StanProgramError as StanProgramError
from onebasin.base.errors import StanRunError as StanRunError

from .home.assemble import Home as Home
from .home.assemble import existing_cmdstan as existing_cmdstan
from .home.assemble import find_cmdstan as find_cmdstan
from .library import open_library as open_library
from .program import StanProgram as StanProgram
from .program import cmdstan_model as cmdstan_model
from .program import definition as definition
from .program import stan_program as stan_program
