"""Models and their parts: networks, priors, likelihoods, parametrisations, symmetries and data sets.

`__init__.pyi` lists the public names; each is loaded when it is first asked for: `posteriors.schema` is read
by what needs no JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
