"""Tools to check results: reference posteriors, and data simulated from a model.

`python -m onebasin.truth.making NAME` makes the reference posterior of one of the `problems`. `__init__.pyi` lists the
public names; each is loaded on first use.
"""

from onebasin.base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
