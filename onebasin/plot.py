"""Plots of posteriors and of results: `ob.plot.traces(posterior)`, `ob.plot.labels(posterior)`, ...

`plot.pyi` next to this file lists them. A plot returns a figure with its text in `alt`, which a notebook shows by
itself; nothing is shown or saved.
"""

from .base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
