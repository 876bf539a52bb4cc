"""Inference methods; each takes a target and an engine and returns a posterior.

`__init__.pyi` lists the public names. Each is loaded on first use, so settings can be read without JAX and Stan.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
