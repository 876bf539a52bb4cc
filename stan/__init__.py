"""Stan: networks as Stan programs, finding or building CmdStan, and compiling and calling any Stan program.

`__init__.pyi` lists the public names; each is loaded when it is first used.
"""

from onebasin.base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __name__, __file__)
