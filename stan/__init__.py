"""The same models as Stan programs; finding or building CmdStan; compiling and calling any Stan program.

`__init__.pyi` lists the public names; each is loaded when it is first asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
