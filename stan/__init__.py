"""The same models as Stan programs; finding or building CmdStan; compiling and calling any Stan program."""

from .errors import (
    CmdStanNotFound,
    HomeBuildError,
    StanDataError,
    StanError,
    StanProgramError,
    StanRunError,
)
from .home.directory import Home
from .home.search import existing_cmdstan, find_cmdstan
from .program import StanProgram, definition, stan_program

__all__ = [
    "CmdStanNotFound",
    "Home",
    "HomeBuildError",
    "StanDataError",
    "StanError",
    "StanProgram",
    "StanProgramError",
    "StanRunError",
    "definition",
    "existing_cmdstan",
    "find_cmdstan",
    "stan_program",
]
