"""Check whether a result is right: reference posteriors, planted components, and data that a model simulates.

References are kept with the package, made by `onebasin truth make`, and checked by code that shares no line with it.
`__init__.pyi` lists the public names; each is loaded when it is first asked for.
"""

from onebasin.base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
