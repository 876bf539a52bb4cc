"""Gaussian approximations: fitted to a posterior, distilled from it, and how far their ELBO can be trusted.

`approximations.pyi` next to this file lists the names; the methods themselves are `ob.advi`, `ob.laplace`, ...
"""

from .base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
