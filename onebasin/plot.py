"""Plots of posteriors and of results: `ob.plot.traces(posterior)`, `ob.plot.labels(posterior)`, ...

`plot.pyi` lists them. A plot function returns a figure with alternative text in `alt`. A notebook displays the figure;
the function itself neither shows nor saves it.
"""

from .base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
