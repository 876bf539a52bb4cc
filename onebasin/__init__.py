"""Inference for models with interchangeable components: `import onebasin as ob`.

`__init__.pyi` lists the public names of this module. The modules `networks`, `plot`, `truth`, ... have the public names
of one topic each. A name is loaded at its first use, so that importing onebasin is fast. All other names in the
packages (`onebasin.models`, `.stan`, `.inference`, `.analysis`, `.studies`) are private and may change.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
