"""Bayesian neural networks: `ob.networks.BayesianNetwork(ob.networks.Network(5, (8,)))`, training, predictions, scores.

`networks.pyi` lists the names.
"""

from .base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
