"""Check whether a result is right: reference posteriors, and data that a model simulates.

`making` makes a reference of one of the `problems`, `python -m onebasin.truth.making NAME`.
`__init__.pyi` lists the public names; each is loaded when it is first asked for.
"""

from onebasin.base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
