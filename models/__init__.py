"""Models and their parts: networks, priors, likelihoods, parametrisations, symmetries and data sets.

`__init__.pyi` lists the public names. Each is loaded at its first use, because some users of the package need no JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
