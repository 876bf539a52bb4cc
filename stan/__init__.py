"""The same models as Stan programs; finding or building CmdStan; compiling and calling any Stan program."""

from .errors import (
    CmdStanNotFound,
    HomeBuildError,
    StanDataError,
    StanError,
    StanProgramError,
    StanRunError,
)
from .home import Home, find, home
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
    "find",
    "home",
    "stan_program",
]
