"""Analysis of posteriors: alignment, diagnostics, comparison, Gaussians, predictive scores, figures, reports.

The room knows the shape of a posterior (an `xarray.DataTree`, see docs/reference/posterior.md) and never a
sampler. Every function that takes one makes a `View` of it at its door, or takes one. `__init__.pyi` lists the public
names, each loaded when it is first asked for; `compare` and `report` are in the folders of these names, and in
`onebasin`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
