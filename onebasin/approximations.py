"""Gaussian approximations fitted to or distilled from a posterior, and checks of their ELBO.

`approximations.pyi` lists the names. The methods of inference are `ob.advi`, `ob.laplace`, ...
"""

from .base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
