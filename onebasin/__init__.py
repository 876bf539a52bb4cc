"""Inference for models whose components are interchangeable: `import onebasin as ob`.

`__init__.pyi` next to this file lists the public names, and the modules `networks`, `plot`, `truth`, ... have those of
one subject. Each is loaded with the room that defines it when it is first asked for, so that the import itself costs
nothing. What the rooms (`onebasin.models`, `.stan`, `.inference`, `.analysis`, `.studies`) hold besides may change.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
